/** Rows of `stack_signing_keys`. */
import { first, one, type Sql } from '../../db/client.ts';

/** The users that tokens are for: ordinary ones, those that an administrator restricted, and anonymous ones. */
export type Audience = 'plain' | 'restricted' | 'anonymous';

export interface PublicJwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y: string;
}

export interface SigningKeyRow {
  readonly kid: string;
  readonly projectId: string;
  readonly audience: Audience;
  readonly publicJwk: PublicJwk;
  readonly privateJwk: Uint8Array;
  readonly createdAt: Date;
  readonly signsFrom: Date;
  readonly expiresAt: Date | null;
}

export const signingKeySealContext = (kid: string) => `stack-signing-key:${kid}`;

export async function insertSigningKey(sql: Sql, key: Omit<SigningKeyRow, 'createdAt'>): Promise<SigningKeyRow> {
  const { publicJwk, ...columns } = key;
  return one(
    await sql<SigningKeyRow[]>`
      insert into stack_signing_keys ${sql({ ...columns, publicJwk: sql.json({ ...publicJwk }) })} returning *`,
  );
}

/** The keys that verifiers get: also the one that will sign soon, and the one that signed until recently. */
export async function selectPublishedKeys(sql: Sql, projectId: string, now: Date): Promise<SigningKeyRow[]> {
  return sql<SigningKeyRow[]>`
    select * from stack_signing_keys where project_id = ${projectId} and (expires_at is null or expires_at > ${now})
    order by signs_from desc, kid`;
}

export async function selectPublishedKey(sql: Sql, kid: string, now: Date): Promise<SigningKeyRow | undefined> {
  return first(
    await sql<SigningKeyRow[]>`
      select * from stack_signing_keys where kid = ${kid} and (expires_at is null or expires_at > ${now})`,
  );
}

/** The key that signs at the moment. */
export async function selectSigningKey(
  sql: Sql,
  projectId: string,
  audience: Audience,
  now: Date,
): Promise<SigningKeyRow | undefined> {
  return first(
    await sql<SigningKeyRow[]>`
      select * from stack_signing_keys where project_id = ${projectId} and audience = ${audience}
        and signs_from <= ${now} and (expires_at is null or expires_at > ${now})
      order by signs_from desc, kid limit 1`,
  );
}

/** A date that is already set can only move to an earlier one. */
export async function retireSigningKeys(
  sql: Sql,
  projectId: string,
  audience: Audience,
  expiresAt: Date,
): Promise<void> {
  await sql`
    update stack_signing_keys set expires_at = least(expires_at, ${expiresAt})
    where project_id = ${projectId} and audience = ${audience}`;
}

export async function deleteExpiredSigningKeys(sql: Sql, now: Date): Promise<void> {
  await sql`delete from stack_signing_keys where expires_at < ${now}`;
}
