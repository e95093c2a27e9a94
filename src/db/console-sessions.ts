/** Rows of `console_sessions` and `console_links`: sign-ins to the console, and links that sign in once. */
import type { ApiKeyRow } from './api-keys.ts';
import { first, type Sql } from './client.ts';

export interface NewConsoleToken {
  readonly tokenHash: Uint8Array;
  readonly apiKeyId: number;
  readonly expiresAt: Date;
}

/** Deletes the oldest sign-ins of a key, so that signing in cannot fill the table. */
export async function insertConsoleSession(sql: Sql, session: NewConsoleToken, keptOfEachKey: number): Promise<void> {
  await sql`insert into console_sessions ${sql(session, 'tokenHash', 'apiKeyId', 'expiresAt')}`;
  await sql`
    delete from console_sessions where api_key_id = ${session.apiKeyId} and token_hash in (
      select token_hash from console_sessions where api_key_id = ${session.apiKeyId}
      order by created_at desc, token_hash offset ${keptOfEachKey})`;
}

/** The key behind a sign-in; a key that has expired, or whose project is being deleted, no longer counts. */
export async function selectConsoleSession(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<ApiKeyRow | undefined> {
  return first(
    await sql<ApiKeyRow[]>`
      select k.*, u.name as created_by_name from console_sessions s
      join api_keys k on k.id = s.api_key_id join users u on u.id = k.created_by
      left join projects p on p.id = k.project_id
      where s.token_hash = ${tokenHash} and s.expires_at > ${now} and p.deleting_at is null
        and (k.expires_at is null or k.expires_at > ${now})`,
  );
}

/** Returns the key that the sign-in stood for. */
export async function deleteConsoleSession(sql: Sql, tokenHash: Uint8Array): Promise<number | undefined> {
  const rows = await sql<{ apiKeyId: number }[]>`
    delete from console_sessions where token_hash = ${tokenHash} returning api_key_id`;
  return first(rows)?.apiKeyId;
}

export async function insertConsoleLink(sql: Sql, link: NewConsoleToken): Promise<void> {
  await sql`insert into console_links ${sql(link, 'tokenHash', 'apiKeyId', 'expiresAt')}`;
}

/** Deletes the link in the same statement that finds it: of two concurrent requests, one gets it. */
export async function takeConsoleLink(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<number | undefined> {
  const taken = await sql<{ apiKeyId: number; expiresAt: Date }[]>`
    delete from console_links where token_hash = ${tokenHash} returning api_key_id, expires_at`;
  const link = first(taken);
  return link !== undefined && link.expiresAt > now ? link.apiKeyId : undefined;
}

export async function deleteExpiredConsoleTokens(sql: Sql): Promise<number> {
  const sessions = await sql`delete from console_sessions where expires_at < now() returning 1`;
  const links = await sql`delete from console_links where expires_at < now() returning 1`;
  return sessions.length + links.length;
}
