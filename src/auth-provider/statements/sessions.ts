/** Rows of `stack_sessions` and `stack_refresh_tokens`. Refresh tokens are stored only as hashes. */
import { first, one, type Sql, type Tx } from '../../db/client.ts';

export interface SessionRow {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly isImpersonation: boolean;
  readonly generation: number;
  readonly createdAt: Date;
  readonly lastUsedAt: Date;
  readonly lastUsedFrom: string | null;
  readonly expiresAt: Date;
}

export async function insertSession(
  sql: Sql,
  session: Pick<
    SessionRow,
    'id' | 'projectId' | 'userId' | 'isImpersonation' | 'lastUsedFrom' | 'expiresAt' | 'createdAt' | 'lastUsedAt'
  >,
): Promise<SessionRow> {
  return one(await sql<SessionRow[]>`insert into stack_sessions ${sql({ ...session })} returning *`);
}

export async function selectSession(sql: Sql, id: string, now: Date): Promise<SessionRow | undefined> {
  return first(await sql<SessionRow[]>`select * from stack_sessions where id = ${id} and expires_at > ${now}`);
}

export async function selectSessionsOfUser(
  sql: Sql,
  projectId: string,
  userId: string,
  now: Date,
): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    select * from stack_sessions where project_id = ${projectId} and user_id = ${userId} and expires_at > ${now}
    order by created_at, id`;
}

export async function touchSession(sql: Sql, id: string, at: Date, from: string): Promise<void> {
  await sql`
    update stack_sessions set last_used_at = greatest(last_used_at, ${at}), last_used_from = ${from} where id = ${id}`;
}

export async function deleteSession(sql: Sql, projectId: string, id: string): Promise<boolean> {
  return (await sql`delete from stack_sessions where id = ${id} and project_id = ${projectId}`).count > 0;
}

/** `except` is a session that stays. */
export async function deleteSessionsOfUser(sql: Sql, userId: string, except: string | null): Promise<void> {
  await sql`delete from stack_sessions where user_id = ${userId} and id is distinct from ${except}`;
}

export interface RefreshTokenRow {
  readonly sessionId: string;
  readonly generation: number;
  readonly retiredAt: Date | null;
}

/** Returns the token with its session, which stays locked: two refreshes of one session take turns. */
export async function lockRefreshToken(
  tx: Tx,
  tokenHash: Uint8Array,
): Promise<{ readonly token: RefreshTokenRow; readonly session: SessionRow } | undefined> {
  const sessions = await tx<SessionRow[]>`
    select s.* from stack_sessions s join stack_refresh_tokens t on t.session_id = s.id
    where t.token_hash = ${tokenHash} for update of s`;
  // Read after the lock: the previous holder may have retired the token.
  const tokens = await tx<RefreshTokenRow[]>`
    select session_id, generation, retired_at from stack_refresh_tokens where token_hash = ${tokenHash}`;
  const [session] = sessions;
  const [token] = tokens;
  return session === undefined || token === undefined ? undefined : { token, session };
}

export async function insertRefreshToken(
  sql: Sql,
  token: { readonly tokenHash: Uint8Array; readonly sessionId: string; readonly generation: number },
): Promise<void> {
  await sql`insert into stack_refresh_tokens ${sql({ ...token })} on conflict do nothing`;
}

/** Makes the new generation current, and retires those before it. */
export async function advanceSession(tx: Tx, sessionId: string, generation: number, at: Date): Promise<void> {
  await tx`update stack_sessions set generation = ${generation} where id = ${sessionId}`;
  await tx`
    update stack_refresh_tokens set retired_at = ${at}
    where session_id = ${sessionId} and generation < ${generation} and retired_at is null`;
}

/** Deletes expired sessions, and tokens retired so long ago that no client still repeats them by mistake. */
export async function deleteOldSessions(sql: Sql, now: Date, retiredBefore: Date): Promise<void> {
  await sql`delete from stack_sessions where expires_at < ${now}`;
  await sql`delete from stack_refresh_tokens where retired_at < ${retiredBefore}`;
}
