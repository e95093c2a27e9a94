/** Rows of `stack_users`, with the accounts elsewhere that belong to each user. */
import { assignments, first, type JsonValue, one, type Sql, type Tx } from '../../db/client.ts';

export interface UserRow {
  readonly id: string;
  readonly projectId: string;
  readonly displayName: string | null;
  readonly primaryEmail: string | null;
  readonly primaryEmailVerified: boolean;
  readonly primaryEmailAuthEnabled: boolean;
  readonly emailChannelId: string;
  readonly profileImageUrl: string | null;
  readonly clientMetadata: JsonValue;
  readonly clientReadOnlyMetadata: JsonValue;
  readonly serverMetadata: JsonValue;
  readonly passwordHash: string | null;
  readonly isAnonymous: boolean;
  readonly restrictedByAdmin: boolean;
  readonly restrictedByAdminReason: string | null;
  readonly restrictedByAdminPrivateDetails: string | null;
  readonly countryCode: string | null;
  readonly riskScores: JsonValue;
  readonly selectedTeamId: string | null;
  readonly signedUpAt: Date;
  readonly lastActiveAt: Date;
  readonly oauthAccounts: readonly UserOauthAccount[];
}

export interface UserOauthAccount {
  readonly id: string;
  readonly providerId: string;
  readonly accountId: string;
  readonly email: string | null;
}

type Changeable = Omit<UserRow, 'id' | 'projectId' | 'oauthAccounts'>;
export type UserChange = { -readonly [Key in keyof Changeable]?: UserRow[Key] };

/** Everything of a `UserRow`. */
const columns = (sql: Sql) => sql`stack_users.*, (
  select coalesce(json_agg(json_build_object(
    'id', a.id, 'providerId', a.provider_id, 'accountId', a.account_id, 'email', a.email
  ) order by a.created_at, a.id), '[]')
  from stack_oauth_accounts a where a.user_id = stack_users.id
) as oauth_accounts`;

const jsonColumns: readonly string[] = ['clientMetadata', 'clientReadOnlyMetadata', 'serverMetadata', 'riskScores'];

/** jsonb parameters are wrapped, because a bare null or text would be sent as SQL's own. */
function columnsOf(sql: Sql, change: UserChange) {
  return Object.fromEntries(
    Object.entries(change)
      .filter(([, value]) => value !== undefined)
      .map(([column, value]) => [column, jsonColumns.includes(column) ? sql.json(value as JsonValue) : value]),
  ) as Record<string, string | boolean | Date | null>;
}

export async function insertUser(sql: Sql, user: Pick<UserRow, 'id' | 'projectId'> & UserChange): Promise<UserRow> {
  return one(await sql<UserRow[]>`insert into stack_users ${sql(columnsOf(sql, user))} returning ${columns(sql)}`);
}

export async function selectUser(sql: Sql, projectId: string, id: string): Promise<UserRow | undefined> {
  return first(
    await sql<UserRow[]>`select ${columns(sql)} from stack_users where project_id = ${projectId} and id = ${id}`,
  );
}

export async function lockUser(tx: Tx, projectId: string, id: string): Promise<UserRow | undefined> {
  return first(
    await tx<UserRow[]>`
      select ${columns(tx)} from stack_users where project_id = ${projectId} and id = ${id}
      for no key update of stack_users`,
  );
}

/** The user who signs in with this address. */
export async function selectUserByLogin(sql: Sql, projectId: string, email: string): Promise<UserRow | undefined> {
  return first(
    await sql<UserRow[]>`
      select ${columns(sql)} from stack_users
      where project_id = ${projectId} and primary_email = ${email} and primary_email_auth_enabled`,
  );
}

export async function updateUser(sql: Sql, id: string, change: UserChange): Promise<UserRow> {
  return one(
    await sql<UserRow[]>`
      update stack_users ${assignments(sql, columnsOf(sql, change))} where id = ${id} returning ${columns(sql)}`,
  );
}

export async function deleteUser(sql: Sql, id: string): Promise<void> {
  await sql`delete from stack_users where id = ${id}`;
}

/** Not logged as a change. */
export async function touchUser(sql: Sql, id: string, at: Date): Promise<void> {
  await sql`update stack_users set last_active_at = greatest(last_active_at, ${at}) where id = ${id}`;
}

export interface UserQuery {
  readonly projectId: string;
  readonly limit?: number | undefined;
  /** Id of the first user of the page. */
  readonly cursor?: string | undefined;
  readonly isDescending: boolean;
  readonly orderBy: 'signed_up_at' | 'last_active_at';
  /** An id, or a part of a name or an address. */
  readonly text?: string | undefined;
  readonly teamId?: string | undefined;
  readonly includesAnonymous: boolean;
  readonly onlyAnonymous: boolean;
  readonly includesRestricted: boolean;
}

export async function selectUsers(sql: Sql, query: UserQuery): Promise<UserRow[]> {
  const column = sql(query.orderBy);
  const like = `%${(query.text ?? '').replace(/[\\%_]/g, (character) => `\\${character}`)}%`;
  const start = sql`(select ${column}, id from stack_users where project_id = ${query.projectId}
    and id = ${query.cursor ?? null})`;
  const order = query.isDescending ? sql`${column} desc, id desc` : sql`${column}, id`;
  return sql<UserRow[]>`
    select ${columns(sql)} from stack_users where project_id = ${query.projectId}
      ${query.cursor === undefined ? sql`` : query.isDescending ? sql`and (${column}, id) <= ${start}` : sql`and (${column}, id) >= ${start}`}
      ${query.text === undefined ? sql`` : sql`and (id::text = ${query.text.toLowerCase()} or display_name ilike ${like} or primary_email ilike ${like})`}
      ${query.includesAnonymous ? sql`` : sql`and not is_anonymous`}
      ${query.onlyAnonymous ? sql`and is_anonymous` : sql``}
      ${query.includesRestricted ? sql`` : sql`and not restricted_by_admin`}
      ${query.teamId === undefined ? sql`` : sql`and exists (select from stack_team_members m where m.user_id = stack_users.id and m.team_id = ${query.teamId})`}
    order by ${order}
    ${query.limit === undefined ? sql`` : sql`limit ${query.limit}`}`;
}

export async function countUsers(sql: Sql, projectId: string): Promise<number> {
  return one(
    await sql<{ count: number }[]>`select count(*)::int as count from stack_users where project_id = ${projectId}`,
  ).count;
}
