/** Rows of `stack_page_sessions`: people who are signed in to the provider's own pages. */
import { first, type Sql } from '../../db/client.ts';

export async function insertPageSession(
  sql: Sql,
  session: { readonly tokenHash: Uint8Array; readonly userId: string; readonly expiresAt: Date },
): Promise<void> {
  await sql`insert into stack_page_sessions ${sql({ ...session })}`;
}

export async function selectPageUserId(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<string | undefined> {
  const rows = await sql<{ userId: string }[]>`
    select user_id from stack_page_sessions where token_hash = ${tokenHash} and expires_at > ${now}`;
  return first(rows)?.userId;
}

export async function deletePageSession(sql: Sql, tokenHash: Uint8Array): Promise<void> {
  await sql`delete from stack_page_sessions where token_hash = ${tokenHash}`;
}

export async function deletePageSessionsOfUser(sql: Sql, userId: string): Promise<void> {
  await sql`delete from stack_page_sessions where user_id = ${userId}`;
}

export async function deleteOldPageSessions(sql: Sql, now: Date): Promise<void> {
  await sql`delete from stack_page_sessions where expires_at < ${now}`;
}
