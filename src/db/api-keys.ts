/** Rows of `api_keys`. The token itself never reaches this table, only its hash. */
import type { OrganizationId, ProjectId, UserId } from '../lib/ids.ts';
import { first, one, type Sql, type Tx } from './client.ts';

/** Carries the id of a key that was revoked, or that signed in and out, or the project whose keys stop counting. */
export const keysChannel = 'catnap_keys';

export type ApiKeyKind = 'personal' | 'organization' | 'project';

/** What a key may do with what it reaches; `core/key-scope.ts` says what each of them means. */
export const apiKeyScopes = ['full', 'read_only', 'branches', 'sql'] as const;
export type ApiKeyScope = (typeof apiKeyScopes)[number];

export interface ApiKeyRow {
  readonly id: number;
  readonly tokenHash: Uint8Array;
  readonly kind: ApiKeyKind;
  readonly userId: UserId | null;
  readonly organizationId: OrganizationId | null;
  readonly projectId: ProjectId | null;
  readonly name: string;
  readonly scope: ApiKeyScope;
  /** From then on it does not work; null is never. */
  readonly expiresAt: Date | null;
  readonly createdBy: UserId;
  readonly createdByName: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly lastUsedFromAddr: string;
}

export type NewApiKey = Pick<
  ApiKeyRow,
  'tokenHash' | 'kind' | 'userId' | 'organizationId' | 'projectId' | 'name' | 'createdBy'
> &
  Partial<Pick<ApiKeyRow, 'scope' | 'expiresAt'>>;

const columns = (sql: Sql) => sql`k.*, u.name as created_by_name`;

export async function insertApiKey(sql: Sql, key: NewApiKey): Promise<ApiKeyRow> {
  return one(
    await sql<ApiKeyRow[]>`
      with k as (insert into api_keys ${sql({ scope: 'full', expiresAt: null, ...key })} returning *)
      select ${columns(sql)} from k join users u on u.id = k.created_by`,
  );
}

/** A key that has expired, or whose project is being deleted, no longer counts. */
export async function selectApiKeyByHash(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<ApiKeyRow | undefined> {
  return first(
    await sql<ApiKeyRow[]>`
      select ${columns(sql)} from api_keys k join users u on u.id = k.created_by
      left join projects p on p.id = k.project_id
      where k.token_hash = ${tokenHash} and p.deleting_at is null
        and (k.expires_at is null or k.expires_at > ${now})`,
  );
}

/** Also of a key that no longer counts: a token belongs to one key. */
export async function isTokenKnown(sql: Sql, tokenHash: Uint8Array): Promise<boolean> {
  return (await sql`select 1 from api_keys where token_hash = ${tokenHash}`).length > 0;
}

export async function selectPersonalApiKeys(sql: Sql, userId: UserId): Promise<ApiKeyRow[]> {
  return sql<ApiKeyRow[]>`
    select ${columns(sql)} from api_keys k join users u on u.id = k.created_by
    where k.user_id = ${userId} order by k.id`;
}

export async function selectOrganizationApiKeys(sql: Sql, organizationId: OrganizationId): Promise<ApiKeyRow[]> {
  return sql<ApiKeyRow[]>`
    select ${columns(sql)} from api_keys k join users u on u.id = k.created_by
    where k.organization_id = ${organizationId} order by k.id`;
}

export async function deletePersonalApiKey(sql: Sql, userId: UserId, id: number): Promise<ApiKeyRow | undefined> {
  return first(
    await sql<ApiKeyRow[]>`
      with k as (delete from api_keys where id = ${id} and user_id = ${userId} returning *)
      select ${columns(sql)} from k join users u on u.id = k.created_by`,
  );
}

export async function deleteOrganizationApiKey(
  sql: Sql,
  organizationId: OrganizationId,
  id: number,
): Promise<ApiKeyRow | undefined> {
  return first(
    await sql<ApiKeyRow[]>`
      with k as (delete from api_keys where id = ${id} and organization_id = ${organizationId} returning *)
      select ${columns(sql)} from k join users u on u.id = k.created_by`,
  );
}

/** Ends what is still being sent to holders of the key, or of the project's keys, once this is committed. */
export async function notifyKeysChanged(tx: Tx, of: number | ProjectId): Promise<void> {
  await tx`select pg_notify(${keysChannel}, ${String(of)})`;
}

/** Whether anybody can still make keys for this user. */
export async function hasFullPersonalApiKey(sql: Sql, userId: UserId, now: Date): Promise<boolean> {
  const rows = await sql`
    select 1 from api_keys
    where user_id = ${userId} and scope = 'full' and (expires_at is null or expires_at > ${now}) limit 1`;
  return rows.length > 0;
}

export interface ApiKeyUse {
  readonly id: number;
  readonly at: Date;
  readonly from: string;
}

/** One statement for a whole batch: requests never wait for it. */
export async function updateApiKeyUses(sql: Sql, uses: readonly ApiKeyUse[]): Promise<void> {
  await sql`
    update api_keys k set last_used_at = greatest(k.last_used_at, u.at),
      -- Another process may have written a later use already.
      last_used_from_addr = case when u.at < k.last_used_at then k.last_used_from_addr else u.addr end
    from unnest(${uses.map((use) => use.id)}::bigint[], ${uses.map((use) => use.at.toISOString())}::timestamptz[],
      ${uses.map((use) => use.from)}::text[]) as u(id, at, addr)
    where k.id = u.id`;
}
