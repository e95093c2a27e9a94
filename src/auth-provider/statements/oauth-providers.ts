/** Rows of `stack_oauth_providers`: the OAuth providers of a project, with its own credentials. Secrets are sealed. */
import { first, one, type Sql } from '../../db/client.ts';

export interface OauthProviderRow {
  readonly projectId: string;
  readonly id: string;
  readonly clientId: string;
  readonly clientSecret: Uint8Array;
  readonly microsoftTenantId: string | null;
}

export const oauthSecretSealContext = ({ projectId, id }: Pick<OauthProviderRow, 'projectId' | 'id'>) =>
  `stack-oauth-provider:${projectId}:${id}`;

export async function selectOauthProviders(sql: Sql, projectId: string): Promise<OauthProviderRow[]> {
  return sql<OauthProviderRow[]>`
    select * from stack_oauth_providers where project_id = ${projectId} order by created_at, id`;
}

export async function selectOauthProvider(sql: Sql, projectId: string, id: string) {
  return first(
    await sql<OauthProviderRow[]>`select * from stack_oauth_providers where project_id = ${projectId} and id = ${id}`,
  );
}

export async function lockOauthProvider(sql: Sql, projectId: string, id: string) {
  return first(
    await sql<OauthProviderRow[]>`
      select * from stack_oauth_providers where project_id = ${projectId} and id = ${id} for update`,
  );
}

/** Undefined when it already exists. */
export async function insertOauthProvider(sql: Sql, provider: OauthProviderRow): Promise<OauthProviderRow | undefined> {
  return first(
    await sql<OauthProviderRow[]>`
      insert into stack_oauth_providers ${sql({ ...provider })} on conflict do nothing returning *`,
  );
}

export async function updateOauthProvider(sql: Sql, provider: OauthProviderRow): Promise<OauthProviderRow> {
  const { projectId, id, ...change } = provider;
  return one(
    await sql<OauthProviderRow[]>`
      update stack_oauth_providers set client_id = ${change.clientId}, client_secret = ${change.clientSecret},
        microsoft_tenant_id = ${change.microsoftTenantId}
      where project_id = ${projectId} and id = ${id} returning *`,
  );
}

export async function deleteOauthProvider(sql: Sql, projectId: string, id: string): Promise<boolean> {
  return (await sql`delete from stack_oauth_providers where project_id = ${projectId} and id = ${id}`).count > 0;
}
