/** API keys. The secret is in the reply that makes the key and nowhere else. */
import { Type } from 'typebox';
import { apiKeyScopes } from '../../core/api-key.ts';
import { closed, idOf, time } from './common.ts';

const keyId = Type.Integer({ description: 'Number of the key.' });
const nullableTime = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description });

const usage = {
  last_used_at: nullableTime('When it was last used; null before the first time. Up to a minute behind.'),
  last_used_from_addr: Type.String({ description: 'Address that last used it, or empty.' }),
};
const limits = {
  scope: Type.Enum([...apiKeyScopes], {
    description:
      'What the key may do with what it reaches, an addition of Catnap’s: everything (`full`); read all but secrets ' +
      '(`read_only`); that, and make branches and change those that are neither default nor protected (`branches`); ' +
      'find databases and get their connection strings (`sql`).',
  }),
  expires_at: time('From then on the key does not work, an addition of Catnap’s. Absent is never.'),
};
const shownLimits = { scope: limits.scope, expires_at: Type.Optional(limits.expires_at) };
const chosenLimits = { scope: Type.Optional(limits.scope), expires_at: Type.Optional(limits.expires_at) };
const projectScope = Type.Optional(idOf('only project that the key reaches'));

export const ApiKeyCreated = Type.Object(
  {
    id: keyId,
    key: Type.String({ description: 'The secret. It is not shown again.' }),
    name: Type.String({ description: 'Name of the key.' }),
    created_at: time('When it was made.'),
    created_by: Type.String({ format: 'uuid', description: 'User who made it.' }),
    project_id: projectScope,
    ...shownLimits,
  },
  { $id: 'ApiKeyCreated', description: 'A new key.' },
);

export const ApiKey = Type.Object(
  {
    id: keyId,
    name: Type.String({ description: 'Name of the key.' }),
    created_at: time('When it was made.'),
    created_by: Type.Object({
      id: Type.String({ format: 'uuid' }),
      name: Type.String(),
      image: Type.String(),
    }),
    ...usage,
    project_id: projectScope,
    ...shownLimits,
  },
  { $id: 'ApiKey', description: 'A key, without its secret.' },
);

export const ApiKeyRevoked = Type.Object(
  {
    id: keyId,
    name: Type.String({ description: 'Name of the key.' }),
    created_at: time('When it was made.'),
    created_by: Type.String({ format: 'uuid', description: 'User who made it.' }),
    ...usage,
    revoked: Type.Boolean({ description: 'True from now on.' }),
    project_id: projectScope,
    warning: Type.Optional(
      Type.String({ description: 'Present when it was the last personal key: how to get a new one.' }),
    ),
  },
  { $id: 'ApiKeyRevoked', description: 'A key that no longer works.' },
);

const keyName = Type.String({ minLength: 1, maxLength: 64, description: 'Name of the key.' });
export const ApiKeyCreateBody = Type.Object({ key_name: keyName, ...chosenLimits }, closed);
export const OrgApiKeyCreateBody = Type.Object(
  {
    key_name: keyName,
    project_id: Type.Optional(idOf('one project that the key may reach, with edit rights')),
    ...chosenLimits,
  },
  closed,
);

const keyIdParam = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Number of the key.',
});
export const ApiKeyParams = Type.Object({ key_id: keyIdParam });
export const OrgApiKeyParams = Type.Object({ org_id: idOf('organization'), key_id: keyIdParam });
