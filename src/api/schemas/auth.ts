/** Auth integrations, their keys and users, trusted domains and OAuth providers; mails of the embedded provider. */
import { Type } from 'typebox';
import { closed, identifier, idOf, ref, time } from './common.ts';
import { limitQuery } from './pagination.ts';

const provider = Type.Enum(['stack'], { description: 'The auth provider; `stack` is the only one.' });

export const AuthIntegration = Type.Object(
  {
    auth_provider: provider,
    auth_provider_project_id: Type.String({ description: 'Id of the project at the provider.' }),
    branch_id: idOf('branch whose database has the users'),
    db_name: Type.String({ description: 'Database that has the users.' }),
    created_at: time('When it was made.'),
    owned_by: Type.Enum(['neon', 'user'], {
      description: 'Who owns the project at the provider: `neon` is Catnap, `user` whoever took it over.',
    }),
    transfer_status: Type.Optional(
      Type.Enum(['initiated', 'finished'], { description: 'How far a transfer of ownership is.' }),
    ),
    jwks_url: Type.String({ description: 'Keys that the tokens of its users verify with.' }),
    base_url: Type.Optional(Type.String({ description: 'Address of the provider, for the SDK’s `baseUrl`.' })),
    users_synced_at: Type.Optional(time('When its users were last brought up to date in the database.')),
    users_sync_error: Type.Optional(
      Type.String({ description: 'Why the users could not be copied into the database. Tried again with pauses.' }),
    ),
    users_provider_error: Type.Optional(
      Type.String({
        description: 'Why the users could not be read from a provider elsewhere. Tried again with pauses.',
      }),
    ),
  },
  { $id: 'NeonAuthIntegration', description: 'Beta. What ties a project to an auth provider.' },
);

export const AuthIntegrationsReply = Type.Object({ data: Type.Array(ref(AuthIntegration)) });

export const AuthKeysReply = Type.Object(
  {
    auth_provider: provider,
    auth_provider_project_id: Type.String({ description: 'Id of the project at the provider.' }),
    pub_client_key: Type.String({ description: 'Publishable key, for browsers.' }),
    secret_server_key: Type.String({ description: 'Secret key, for servers. It is not shown again.' }),
    jwks_url: Type.String({ description: 'Keys that the tokens of its users verify with.' }),
    schema_name: Type.String({ description: 'Schema of the table of users.' }),
    table_name: Type.String({ description: 'Table of users.' }),
    base_url: Type.Optional(Type.String({ description: 'Address of the provider, for the SDK’s `baseUrl`.' })),
  },
  { description: 'Beta. A fresh pair of SDK keys.' },
);

const databaseName = Type.Optional(
  identifier('Database for the users; `neondb` when left out, or the branch’s first one.'),
);

export const AuthCreateBody = Type.Object(
  {
    auth_provider: provider,
    project_id: idOf('project'),
    branch_id: idOf('branch; the default one'),
    database_name: databaseName,
    role_name: Type.Optional(
      identifier('Role that may read the users; `neondb_owner` when left out, or the branch’s first one.'),
    ),
  },
  closed,
);

export const BranchAuthCreateBody = Type.Object({ auth_provider: provider, database_name: databaseName }, closed);

export const AuthProjectBody = Type.Object({ auth_provider: provider, project_id: idOf('project') }, closed);

export const AuthDeleteBody = Type.Object(
  {
    delete_data: Type.Optional(
      Type.Boolean({ default: false, description: 'Also drop the schema of users, and the project at the provider.' }),
    ),
  },
  closed,
);

const person = {
  email: Type.String({ minLength: 1, maxLength: 256, description: 'Email address, unique among the users.' }),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'Name to show.' })),
};

export const AuthUserBody = Type.Object({ auth_provider: provider, project_id: idOf('project'), ...person }, closed);
export const BranchAuthUserBody = Type.Object(person, closed);
export const AuthUserReply = Type.Object({ id: Type.String({ description: 'Id of the new user.' }) });
export const TransferReply = Type.Object({
  url: Type.String({ description: 'Page on which to choose who takes the project over; good for an hour, once.' }),
});

const domain = Type.String({ minLength: 1, maxLength: 301, description: 'Origin, such as https://app.example.com.' });

/** The path names the integration, and so the provider; `neonctl` sends `better_auth` whatever the integration is. */
const anyProvider = Type.Enum(['stack', 'better_auth', 'mock'], {
  description: 'Not looked at: the project or branch in the path has one integration, of the provider `stack`.',
});

export const DomainsReply = Type.Object({ domains: Type.Array(Type.Object({ domain, auth_provider: provider })) });
export const DomainAddBody = Type.Object({ auth_provider: anyProvider, domain }, closed);
export const DomainsDeleteBody = Type.Object(
  {
    auth_provider: anyProvider,
    domains: Type.Array(Type.Object({ domain }, closed), { minItems: 1, maxItems: 100, description: 'To be removed.' }),
  },
  closed,
);

const oauthId = Type.String({
  pattern: '^[a-z0-9-]{1,60}$',
  description: '`google`, `github`, `microsoft`, `vercel`, or one that the operator has named an issuer for.',
});

export const OauthProvider = Type.Object({
  id: oauthId,
  type: Type.Enum(['standard', 'shared'], {
    description: '`standard` has credentials of your own. `shared` exists only at an auth provider elsewhere.',
  }),
  client_id: Type.Optional(Type.String({ description: 'Client id.' })),
  client_secret: Type.Optional(Type.String({ description: 'Client secret.' })),
});
export const OauthProvidersReply = Type.Object({ providers: Type.Array(OauthProvider) });

const credentials = {
  client_id: Type.Optional(Type.String({ minLength: 1, maxLength: 500, description: 'Client id of your own.' })),
  client_secret: Type.Optional(Type.String({ minLength: 1, maxLength: 500, description: 'Its secret.' })),
  microsoft_tenant_id: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9.-]{0,199}$',
      description: 'For `microsoft`: id or domain of a tenant; personal accounts when left out.',
    }),
  ),
};
export const OauthAddBody = Type.Object({ id: oauthId, ...credentials }, closed);
export const OauthUpdateBody = Type.Object(credentials, closed);

const userId = Type.String({ format: 'uuid', description: 'Id of the user at the provider.' });
const ofProject = { project_id: idOf('project') };
const ofBranch = { ...ofProject, branch_id: idOf('branch') };

export const IntegrationParams = Type.Object({
  ...ofProject,
  auth_provider: Type.String({ minLength: 1, maxLength: 60, description: 'The auth provider.' }),
});
export const AuthUserParams = Type.Object({ ...ofProject, auth_user_id: userId });
export const BranchAuthUserParams = Type.Object({ ...ofBranch, auth_user_id: userId });
export const OauthParams = Type.Object({ ...ofProject, oauth_provider_id: oauthId });
export const BranchOauthParams = Type.Object({ ...ofBranch, oauth_provider_id: oauthId });

export const nothing = Type.Unsafe<undefined>(Type.Null({ description: 'Done; there is no body.' }));

export const OutboxQuery = Type.Object({
  limit: limitQuery(100, 20),
  before: Type.Optional(Type.Integer({ minimum: 1, description: 'Id of the last mail of the page before.' })),
});

export const OutboxReply = Type.Object({
  mails: Type.Array(
    Type.Object({
      id: Type.Integer({ description: 'Rises with time.' }),
      auth_provider_project_id: Type.String({ description: 'The project at the provider.' }),
      auth_provider_project_name: Type.String({ description: 'Its name.' }),
      kind: Type.String({ description: 'password_reset or email_verification.' }),
      to: Type.String({ description: 'The recipient.' }),
      subject: Type.String({ description: 'As the recipient sees it.' }),
      text: Type.String({ description: 'The whole mail, with its link.' }),
      status: Type.String({ description: 'stored (nothing was tried), sent, retrying or failed.' }),
      error: Type.Optional(Type.String({ description: 'What the mail server said last.' })),
      created_at: Type.String({ format: 'date-time', description: 'When it was written.' }),
    }),
  ),
});
