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

export async function updateIdempotencyReply(tx: Tx, scope: string, key: string, reply: Uint8Array): Promise<void> {
  await tx`update idempotency_keys set reply = ${reply} where scope = ${scope} and key = ${key}`;
}

export async function deleteOldIdempotencyKeys(sql: Sql, olderThanHours: number): Promise<number> {
  const rows = await sql`
    delete from idempotency_keys where created_at < now() - ${olderThanHours} * interval '1 hour' returning 1`;
  return rows.length;
}
