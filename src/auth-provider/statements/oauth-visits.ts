/** Rows of `stack_oauth_visits`: people on their way to an OAuth provider and back. Each step is taken once. */
import { first, json, type Sql } from '../../db/client.ts';

/** Who somebody is, by the word of an OAuth provider. */
export interface Identity {
  readonly issuer: string;
  readonly accountId: string;
  readonly email: string | null;
  /** Whether the OAuth provider vouches that the address belongs to this person. */
  readonly isEmailVerified: boolean;
  readonly displayName: string | null;
  readonly pictureUrl: string | null;
}

export interface OauthVisitRow {
  readonly id: string;
  readonly projectId: string;
  readonly providerId: string;
  readonly userId: string | null;
  readonly stateHash: Uint8Array;
  readonly redirectUri: string;
  readonly afterCallbackRedirectUrl: string | null;
  readonly appState: string;
  readonly codeChallenge: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly identity: Identity | null;
  readonly codeExpiresAt: Date | null;
}

export async function insertOauthVisit(
  sql: Sql,
  visit: Omit<OauthVisitRow, 'identity' | 'codeExpiresAt'>,
): Promise<void> {
  await sql`insert into stack_oauth_visits ${sql({ ...visit })}`;
}

/** The visit that has this state, for the first request that names it. */
export async function takeReturningVisit(sql: Sql, stateHash: Uint8Array, at: Date) {
  return first(
    await sql<OauthVisitRow[]>`
      update stack_oauth_visits set returned_at = ${at} where state_hash = ${stateHash} and returned_at is null
      returning *`,
  );
}

export async function recordIdentity(
  sql: Sql,
  id: string,
  found: { readonly identity: Identity; readonly codeHash: Uint8Array; readonly codeExpiresAt: Date },
): Promise<void> {
  await sql`
    update stack_oauth_visits set identity = ${json(sql, found.identity)}, code_hash = ${found.codeHash},
      code_expires_at = ${found.codeExpiresAt}
    where id = ${id}`;
}

/** The visit that has this code, for the first request that names it. */
export async function takeRedeemedVisit(sql: Sql, projectId: string, codeHash: Uint8Array, at: Date) {
  return first(
    await sql<OauthVisitRow[]>`
      update stack_oauth_visits set redeemed_at = ${at}
      where project_id = ${projectId} and code_hash = ${codeHash} and redeemed_at is null
      returning *`,
  );
}

export async function deleteOldOauthVisits(sql: Sql, expiredBefore: Date): Promise<void> {
  await sql`delete from stack_oauth_visits where expires_at < ${expiredBefore}`;
}
