/** Rows of `stack_sessions` and `stack_refresh_tokens`. Of refresh tokens only hashes are kept. */
import { first, one, type Sql } from '../../../db/client.ts';

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

export async function selectSessionsOfUser(sql: Sql, userId: string, now: Date): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    select * from stack_sessions where user_id = ${userId} and expires_at > ${now} order by created_at, id`;
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
