/** Rows of `stack_page_sessions`: people who are signed in to the provider's own pages. */
import type { Sql } from '../../../db/client.ts';

export async function deletePageSessionsOfUser(sql: Sql, userId: string): Promise<void> {
  await sql`delete from stack_page_sessions where user_id = ${userId}`;
}

export async function deleteOldPageSessions(sql: Sql, now: Date): Promise<void> {
  await sql`delete from stack_page_sessions where expires_at < ${now}`;
}
