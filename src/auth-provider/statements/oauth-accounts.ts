/** Rows of `stack_oauth_accounts`: accounts elsewhere that belong to users. */
import { first, type Sql } from '../../db/client.ts';

export interface OauthAccountRow {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly providerId: string;
  readonly issuer: string;
  readonly accountId: string;
  readonly email: string | null;
}

export async function selectOauthAccount(
  sql: Sql,
  account: Pick<OauthAccountRow, 'projectId' | 'providerId' | 'issuer' | 'accountId'>,
): Promise<OauthAccountRow | undefined> {
  return first(
    await sql<OauthAccountRow[]>`
      select * from stack_oauth_accounts
      where project_id = ${account.projectId} and provider_id = ${account.providerId}
        and issuer = ${account.issuer} and account_id = ${account.accountId}`,
  );
}

export async function insertOauthAccount(sql: Sql, account: OauthAccountRow): Promise<void> {
  await sql`insert into stack_oauth_accounts ${sql({ ...account })}`;
}

export async function deleteOauthAccount(sql: Sql, userId: string, id: string): Promise<boolean> {
  return (await sql`delete from stack_oauth_accounts where user_id = ${userId} and id = ${id}`).count > 0;
}

export async function deleteOauthAccountsOfUser(sql: Sql, userId: string): Promise<void> {
  await sql`delete from stack_oauth_accounts where user_id = ${userId}`;
}
