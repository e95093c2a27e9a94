/** Rows of `project_key_sets`: providers whose tokens log in to a project. */
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { first, one, type Sql } from './client.ts';

export interface KeySetRow {
  readonly id: string;
  readonly projectId: ProjectId;
  readonly branchId: BranchId | null;
  readonly jwksUrl: string;
  readonly providerName: string;
  readonly jwtAudience: string | null;
  readonly roleNames: readonly string[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewKeySet = Omit<KeySetRow, 'createdAt' | 'updatedAt'>;

export async function insertKeySet(sql: Sql, keySet: NewKeySet): Promise<KeySetRow> {
  return one(await sql<KeySetRow[]>`insert into project_key_sets ${sql(keySet)} returning *`);
}

export async function selectKeySets(sql: Sql, projectId: ProjectId): Promise<KeySetRow[]> {
  return sql<KeySetRow[]>`select * from project_key_sets where project_id = ${projectId} order by created_at, id`;
}

/** What counts for one branch counts for another from now on. */
export async function moveKeySets(sql: Sql, from: BranchId, to: BranchId): Promise<void> {
  await sql`update project_key_sets set branch_id = ${to}, updated_at = now() where branch_id = ${from}`;
}

export async function deleteKeySet(sql: Sql, projectId: ProjectId, id: string): Promise<KeySetRow | undefined> {
  return first(
    await sql<KeySetRow[]>`delete from project_key_sets where project_id = ${projectId} and id = ${id} returning *`,
  );
}

/** A key set that counts for an endpoint and a role, with the role's stored password. */
export interface TokenLoginRow {
  readonly keySetId: string;
  readonly projectId: ProjectId;
  readonly jwksUrl: string;
  readonly jwtAudience: string | null;
  /** Sealed; null when it is not stored, or there is no such role. */
  readonly password: Uint8Array | null;
}

export async function selectTokenLogins(sql: Sql, endpointId: EndpointId, role: string): Promise<TokenLoginRow[]> {
  return sql<TokenLoginRow[]>`
    select k.id as key_set_id, k.project_id, k.jwks_url, k.jwt_audience, r.password
    from endpoints e
    join projects p on p.id = e.project_id and p.deleting_at is null
    join project_key_sets k on k.project_id = e.project_id and coalesce(k.branch_id, e.branch_id) = e.branch_id
    left join roles r on r.branch_id = e.branch_id and r.name = ${role} and r.dropped_at is null and not r.no_login
    where e.id = ${endpointId} and e.deleting_at is null and ${role} = any (k.role_names)
    order by k.created_at, k.id`;
}
