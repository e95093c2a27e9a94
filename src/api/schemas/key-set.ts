/** Providers whose tokens log in to a project over HTTP. */
import { Type } from 'typebox';
import { closed, identifier, idOf, ref, time } from './common.ts';
import { operationList } from './operation.ts';

const jwksUrl = 'Address of the provider’s JSON Web Key Set.';
const providerName = 'Name of the provider, for people.';
const audience = 'What `aud` of a token must contain.';

export const JWKS = Type.Object(
  {
    id: Type.String({ description: 'Id of the key set.' }),
    project_id: idOf('project'),
    branch_id: Type.Optional(idOf('branch')),
    jwks_url: Type.String({ description: jwksUrl }),
    provider_name: Type.String({ description: providerName }),
    jwt_audience: Type.Optional(Type.String({ description: audience })),
    role_names: Type.Array(Type.String(), { description: 'Roles that its tokens may log in as.' }),
    created_at: time('When it was added.'),
    updated_at: time('When it last changed.'),
  },
  { $id: 'JWKS', description: 'A provider whose tokens log in over HTTP.' },
);

export const JwksListReply = Type.Object({ jwks: Type.Array(ref(JWKS)) });
export const JwksOperationsReply = Type.Object({ jwks: ref(JWKS), operations: operationList });

export const JwksCreateBody = Type.Object(
  {
    jwks_url: Type.String({ minLength: 1, description: `${jwksUrl} It must start with https://.` }),
    provider_name: Type.String({ minLength: 1, maxLength: 256, description: providerName }),
    branch_id: Type.Optional(idOf('branch')),
    jwt_audience: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, description: `${audience} Any by default.` }),
    ),
    role_names: Type.Optional(
      Type.Array(identifier('Name of a role.'), {
        maxItems: 10,
        description: 'Roles that its tokens may log in as: authenticator, authenticated and anonymous by default.',
      }),
    ),
    skip_role_creation: Type.Optional(Type.Boolean({ description: 'Do not make the roles that are missing.' })),
  },
  closed,
);

export const JwksParams = Type.Object({
  project_id: idOf('project'),
  jwks_id: Type.String({ minLength: 1, description: 'Id of the key set.' }),
});
