/** Rows of `stack_key_sets`: up to three keys that are made and revoked together. The keys are not stored. */
import { first, one, type Sql } from '../../db/client.ts';

export interface KeySetRow {
  readonly id: string;
  readonly projectId: string;
  readonly description: string;
  readonly publishableHash: Uint8Array | null;
  readonly publishableLastFour: string | null;
  readonly secretHash: Uint8Array | null;
  readonly secretLastFour: string | null;
  readonly adminHash: Uint8Array | null;
  readonly adminLastFour: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
}

export type NewKeySet = Omit<KeySetRow, 'createdAt' | 'revokedAt'>;

export async function insertKeySet(sql: Sql, set: NewKeySet): Promise<KeySetRow> {
  return one(await sql<KeySetRow[]>`insert into stack_key_sets ${sql({ ...set })} returning *`);
}

export async function selectKeySets(sql: Sql, projectId: string): Promise<KeySetRow[]> {
  return sql<KeySetRow[]>`
    select * from stack_key_sets where project_id = ${projectId} order by created_at, id`;
}

export async function selectKeySet(sql: Sql, projectId: string, id: string): Promise<KeySetRow | undefined> {
  return first(await sql<KeySetRow[]>`select * from stack_key_sets where project_id = ${projectId} and id = ${id}`);
}

/** A revocation is final; its first time is kept. */
export async function updateKeySet(
  sql: Sql,
  projectId: string,
  id: string,
  change: { readonly description?: string | undefined; readonly revokedAt?: Date | undefined },
): Promise<KeySetRow | undefined> {
  return first(
    await sql<KeySetRow[]>`
      update stack_key_sets set description = coalesce(${change.description ?? null}, description),
        revoked_at = coalesce(revoked_at, ${change.revokedAt ?? null})
      where project_id = ${projectId} and id = ${id} returning *`,
  );
}

export type KeyKind = 'publishable' | 'secret' | 'admin';

/** Looked up by the hash, so that the response time reveals nothing about how close a guess was. */
export async function isGoodKey(
  sql: Sql,
  key: { readonly projectId: string; readonly kind: KeyKind; readonly hash: Uint8Array; readonly now: Date },
): Promise<boolean> {
  const rows = await sql`
    select from stack_key_sets where ${sql(`${key.kind}_hash`)} = ${key.hash} and project_id = ${key.projectId}
      and revoked_at is null and expires_at > ${key.now}`;
  return rows.length > 0;
}
