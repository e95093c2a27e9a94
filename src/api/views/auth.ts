/** Auth integrations, and mails of the embedded provider: row to wire. */
import type { Static } from 'typebox';
import type { OauthProvider as ProviderOauth } from '../../auth-client/client.ts';
import { jwksUrl, type Providers } from '../../auth-client/providers.ts';
import type { OutboxMail } from '../../auth-provider/core/outbox.ts';
import { type AuthIntegration, type FirstKeys, usersSchema, usersTable } from '../../core/auth-integration.ts';
import type { AuthIntegration as AuthIntegrationSchema, AuthKeysReply, OauthProvider } from '../schemas/auth.ts';
import { optionalTime, present, time } from './common.ts';

export function integrationView(providers: Providers, row: AuthIntegration): Static<typeof AuthIntegrationSchema> {
  const at = providerView(providers, row);
  return {
    ...at,
    branch_id: row.branchId ?? '',
    db_name: row.databaseName,
    created_at: time(row.createdAt),
    owned_by: row.ownedBy,
    ...present({
      transfer_status: row.transferStatus,
      users_synced_at: optionalTime(row.syncedAt),
      users_sync_error: row.syncError,
      users_provider_error: row.followError,
    }),
  };
}

export function keysView(providers: Providers, row: AuthIntegration, keys: FirstKeys): Static<typeof AuthKeysReply> {
  return {
    ...providerView(providers, row),
    pub_client_key: keys.publishableClientKey,
    secret_server_key: keys.secretServerKey,
    schema_name: usersSchema,
    table_name: usersTable,
  };
}

function providerView(providers: Providers, { authProvider, providerProjectId, providerUrl }: AuthIntegration) {
  const baseUrl = providers.publicUrlOf(providerUrl);
  const projectId = providerProjectId ?? '';
  return {
    auth_provider: authProvider,
    auth_provider_project_id: projectId,
    jwks_url: jwksUrl(baseUrl, projectId),
    base_url: baseUrl,
  };
}

/** The provider may have others too, which nobody can sign in with here. */
export function oauthViews(all: readonly ProviderOauth[], ids: readonly string[]): Static<typeof OauthProvider>[] {
  return all.filter(({ id }) => ids.includes(id)).map(oauthView);
}

export function oauthView({ id, type, clientId, clientSecret }: ProviderOauth): Static<typeof OauthProvider> {
  return {
    id,
    type: type === 'standard' ? 'standard' : 'shared',
    ...present({ client_id: clientId, client_secret: clientSecret }),
  };
}

export function outboxMailView(mail: OutboxMail) {
  return {
    id: mail.id,
    auth_provider_project_id: mail.projectId,
    auth_provider_project_name: mail.projectName,
    kind: mail.kind,
    to: mail.to,
    subject: mail.subject,
    text: mail.text,
    status: mail.status,
    ...(mail.error === null ? {} : { error: mail.error }),
    created_at: mail.createdAt.toISOString(),
  };
}
