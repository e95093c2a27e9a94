/** Rows of `idempotency_keys`. */
import { first, type Sql, type Tx } from './client.ts';

export interface IdempotencyRow {
  readonly requestHash: Uint8Array;
  readonly reply: Uint8Array | null;
}

/**
 * True when this transaction is the first with that key. A concurrent duplicate waits here, on the unique index, until
 * the first one commits (then false) or rolls back (then true).
 */
export async function insertIdempotencyKey(
  tx: Tx,
  row: { readonly scope: string; readonly key: string; readonly requestHash: Uint8Array },
): Promise<boolean> {
  const inserted = await tx`insert into idempotency_keys ${tx(row)} on conflict do nothing returning 1`;
  return inserted.length > 0;
}

export async function selectIdempotencyKey(sql: Sql, scope: string, key: string): Promise<IdempotencyRow | undefined> {
  return first(
    await sql<IdempotencyRow[]>`
      select request_hash, reply from idempotency_keys where scope = ${scope} and key = ${key}`,
  );
}

export async function updateIdempotencyReply(sql: Sql, scope: string, key: string, reply: Uint8Array): Promise<void> {
  await sql`update idempotency_keys set reply = ${reply} where scope = ${scope} and key = ${key}`;
}

/**
 * For work that no transaction spans: true when the key is ours now. A key that was taken long ago and has no reply yet
 * was left by a process that died, and is taken over.
 */
export async function claimIdempotencyKey(
  sql: Sql,
  row: { readonly scope: string; readonly key: string; readonly requestHash: Uint8Array },
  abandonedAfterMs: number,
): Promise<boolean> {
  const claimed = await sql`
    insert into idempotency_keys ${sql(row)} on conflict (scope, key) do update
    set created_at = now(), request_hash = excluded.request_hash
    where idempotency_keys.reply is null and idempotency_keys.created_at < now() - ${abandonedAfterMs} * interval '1 ms' returning 1`;
  return claimed.length > 0;
}

export async function deleteIdempotencyKey(sql: Sql, scope: string, key: string): Promise<void> {
  await sql`delete from idempotency_keys where scope = ${scope} and key = ${key}`;
}

export async function deleteOldIdempotencyKeys(sql: Sql, olderThanHours: number): Promise<number> {
  const rows = await sql`
    delete from idempotency_keys where created_at < now() - ${olderThanHours} * interval '1 hour' returning 1`;
  return rows.length;
}
