/** API keys: row to wire. */
import type { Static } from 'typebox';
import type { ApiKey, KeyLimits, NewKey, RevokedKey } from '../../core/api-key.ts';
import { asOrganizationId, asProjectId } from '../../lib/ids.ts';
import type {
  ApiKeyCreateBody,
  ApiKeyCreated,
  ApiKeyRevoked,
  ApiKey as ApiKeySchema,
  OrgApiKeyCreateBody,
} from '../schemas/api-key.ts';
import { optionalTime, present, time } from './common.ts';

const usage = (key: ApiKey) => ({
  last_used_at: optionalTime(key.lastUsedAt),
  last_used_from_addr: key.lastUsedFromAddr,
});

const limits = (key: KeyLimits) => ({ scope: key.scope, ...present({ expires_at: optionalTime(key.expiresAt) }) });

export function apiKeyView(key: ApiKey): Static<typeof ApiKeySchema> {
  return {
    id: key.id,
    name: key.name,
    created_at: time(key.createdAt),
    created_by: { id: key.createdBy, name: key.createdByName, image: '' },
    ...usage(key),
    ...present({ project_id: key.projectId }),
    ...limits(key),
  };
}

export function createdApiKeyView({ key, token }: NewKey): Static<typeof ApiKeyCreated> {
  return {
    id: key.id,
    key: token,
    name: key.name,
    created_at: time(key.createdAt),
    created_by: key.createdBy,
    ...present({ project_id: key.projectId }),
    ...limits(key),
  };
}

const lastKeyWarning =
  'this was the last personal key: `catnap keys recover`, run on the machine by the user who runs Catnap, makes a new one';

export function revokedApiKeyView({ key, wasLastPersonal }: RevokedKey): Static<typeof ApiKeyRevoked> {
  return {
    id: key.id,
    name: key.name,
    created_at: time(key.createdAt),
    created_by: key.createdBy,
    ...usage(key),
    revoked: true,
    ...present({ project_id: key.projectId, warning: wasLastPersonal ? lastKeyWarning : null }),
  };
}

function limitsInput({ scope = 'full', expires_at: expiresAt }: Static<typeof ApiKeyCreateBody>): KeyLimits {
  return { scope, expiresAt: expiresAt === undefined ? null : new Date(expiresAt) };
}

export const personalKeyInput = (body: Static<typeof ApiKeyCreateBody>) => ({
  name: body.key_name,
  ...limitsInput(body),
});

export function organizationKeyInput(params: { org_id: string }, body: Static<typeof OrgApiKeyCreateBody>) {
  return {
    organizationId: asOrganizationId(params.org_id),
    name: body.key_name,
    projectId: body.project_id === undefined ? null : asProjectId(body.project_id),
    ...limitsInput(body),
  };
}

export const keyIdOf = (params: { key_id: number }) => params.key_id;
