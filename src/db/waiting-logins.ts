/** Rows of `waiting_logins`: clients of the database port that wait for a person. */
import type { EndpointId, ProjectId } from '../lib/ids.ts';
import { first, type Sql } from './client.ts';

export interface WaitingLoginRow {
  readonly tokenHash: Uint8Array;
  readonly clientAddress: string;
  readonly clientKey: string;
  readonly askedRole: string;
  readonly askedDatabase: string;
  readonly applicationName: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly decidedAt: Date | null;
  readonly apiKeyId: number | null;
  readonly endpointId: EndpointId | null;
  readonly roleName: string | null;
  readonly databaseName: string | null;
  readonly takenAt: Date | null;
}

export type NewWaitingLogin = Pick<
  WaitingLoginRow,
  | 'tokenHash'
  | 'clientAddress'
  | 'clientKey'
  | 'askedRole'
  | 'askedDatabase'
  | 'applicationName'
  | 'createdAt'
  | 'expiresAt'
>;

export interface WaitingMax {
  readonly total: number;
  readonly perClient: number;
}

/** Names the hash of a login that was decided. */
export const waitingLoginsChannel = 'catnap_waiting_logins';

/**
 * False when too many wait already, in all or of this client. Several at once may exceed the bound by as many as
 * there are connections to the database, which does not matter: the bound is there for the table's size.
 */
export async function insertWaitingLogin(sql: Sql, login: NewWaitingLogin, max: WaitingMax): Promise<boolean> {
  const { tokenHash, clientAddress, clientKey, createdAt, expiresAt } = login;
  const made = await sql`
    insert into waiting_logins (token_hash, client_address, client_key, asked_role, asked_database, application_name,
      created_at, expires_at)
    select ${tokenHash}, ${clientAddress}, ${clientKey}, ${login.askedRole}, ${login.askedDatabase},
      ${login.applicationName}, ${createdAt}::timestamptz, ${expiresAt}::timestamptz
    where (select count(*) from waiting_logins where decided_at is null and expires_at > ${createdAt}) < ${max.total}
      and (select count(*) from waiting_logins where decided_at is null and expires_at > ${createdAt}
           and client_key = ${clientKey}) < ${max.perClient}
    returning 1`;
  return made.length === 1;
}

export async function selectWaitingLogin(sql: Sql, tokenHash: Uint8Array): Promise<WaitingLoginRow | undefined> {
  return first(await sql<WaitingLoginRow[]>`select * from waiting_logins where token_hash = ${tokenHash}`);
}

export type Decision = Pick<WaitingLoginRow, 'apiKeyId' | 'endpointId' | 'roleName' | 'databaseName'>;

/** Of two decisions the first counts; undefined when it is too late. */
export async function decideWaitingLogin(
  sql: Sql,
  tokenHash: Uint8Array,
  { apiKeyId, endpointId, roleName, databaseName }: Decision,
  now: Date,
): Promise<WaitingLoginRow | undefined> {
  const decided = first(
    await sql<WaitingLoginRow[]>`
      update waiting_logins set decided_at = ${now}, api_key_id = ${apiKeyId}, endpoint_id = ${endpointId},
        role_name = ${roleName}, database_name = ${databaseName}
      where token_hash = ${tokenHash} and decided_at is null and expires_at > ${now} returning *`,
  );
  if (decided !== undefined) await sql`select pg_notify(${waitingLoginsChannel}, ${keyOf(tokenHash)})`;
  return decided;
}

/** The key of a login in notifications. */
export const keyOf = (tokenHash: Uint8Array) => Buffer.from(tokenHash).toString('base64url');

export interface TakenLogin extends WaitingLoginRow {
  /** Of the chosen endpoint and role; null when the login was refused, or either is gone by now. */
  readonly projectId: ProjectId | null;
  readonly passwordlessAccess: boolean | null;
  readonly password: Uint8Array | null;
}

/** Takes a decision, once. Undefined when there is none yet, or no such login. */
export async function takeDecision(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<TakenLogin | undefined> {
  return first(
    await sql<TakenLogin[]>`
      with taken as (
        update waiting_logins set taken_at = ${now}
        where token_hash = ${tokenHash} and decided_at is not null and taken_at is null returning *)
      select t.*, p.id as project_id, e.passwordless_access, r.password from taken t
      left join endpoints e on e.id = t.endpoint_id and e.deleting_at is null
      left join projects p on p.id = e.project_id and p.deleting_at is null
      left join roles r on r.branch_id = e.branch_id and r.name = t.role_name and r.dropped_at is null`,
  );
}

/** The client has left. A decision that was used stays for a while, so that its page can say so. */
export async function deleteWaitingLogin(sql: Sql, tokenHash: Uint8Array): Promise<void> {
  await sql`delete from waiting_logins where token_hash = ${tokenHash} and taken_at is null`;
}

export async function deleteExpiredWaitingLogins(sql: Sql): Promise<number> {
  return (await sql`delete from waiting_logins where expires_at < now() returning 1`).length;
}
