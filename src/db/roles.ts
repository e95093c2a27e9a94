/** Rows of `roles`. A row that is `pending` is newer than the server; otherwise the server's verifier is the truth. */
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { assignments, first, one, type Sql, type Tx } from './client.ts';

/** Payload: the endpoint. */
export const resetsChannel = 'catnap_resets';

export interface RoleRow {
  readonly id: number;
  readonly branchId: BranchId;
  readonly name: string;
  readonly verifier: string | null;
  /** What the server holds while the verifier is pending after a reset; null otherwise. */
  readonly heldVerifier: string | null;
  readonly password: Uint8Array | null;
  readonly noLogin: boolean;
  readonly protected: boolean;
  /** It may not make databases or roles. */
  readonly limited: boolean;
  readonly applied: boolean;
  readonly pending: boolean;
  readonly revision: number;
  /** When its password was last reset over the API. */
  readonly resetAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly droppedAt: Date | null;
}

export type NewRole = Pick<RoleRow, 'branchId' | 'name' | 'verifier' | 'password' | 'noLogin'> &
  Partial<Pick<RoleRow, 'protected' | 'limited' | 'applied' | 'pending' | 'droppedAt'>>;

export async function insertRole(sql: Sql, role: NewRole): Promise<RoleRow> {
  return one(await sql<RoleRow[]>`insert into roles ${sql(role)} returning *`);
}

export async function selectRoles(sql: Sql, branchId: BranchId): Promise<RoleRow[]> {
  return sql<RoleRow[]>`select * from roles where branch_id = ${branchId} and dropped_at is null order by id`;
}

export async function selectRole(sql: Sql, branchId: BranchId, name: string): Promise<RoleRow | undefined> {
  return first(
    await sql<RoleRow[]>`select * from roles where branch_id = ${branchId} and name = ${name} and dropped_at is null`,
  );
}

/** The roles of this name on branches that limited keys must not get into: the default one and protected ones. */
export async function selectGuardedRoles(sql: Sql, projectId: ProjectId, name: string): Promise<RoleRow[]> {
  return sql<RoleRow[]>`
    select r.* from roles r join branches b on b.id = r.branch_id
    where b.project_id = ${projectId} and (b.is_default or b.protected) and r.name = ${name}`;
}

export async function selectRolesToApply(sql: Sql, branchId: BranchId): Promise<RoleRow[]> {
  return sql<RoleRow[]>`select * from roles where branch_id = ${branchId} and pending order by id`;
}

export async function updateRole(
  sql: Sql,
  id: number,
  change: Partial<
    Pick<
      RoleRow,
      'verifier' | 'heldVerifier' | 'password' | 'noLogin' | 'applied' | 'pending' | 'droppedAt' | 'resetAt'
    >
  >,
): Promise<RoleRow> {
  return one(
    await sql<
      RoleRow[]
    >`update roles ${assignments(sql, change)}, revision = revision + 1 where id = ${id} returning *`,
  );
}

/** Tells every proxy, when this transaction commits, to look for sessions that are older than a reset. */
export async function announceReset(tx: Tx, branchId: BranchId): Promise<void> {
  await tx`select pg_notify(${resetsChannel}, id) from endpoints where branch_id = ${branchId} and deleting_at is null`;
}

/** The roles of an endpoint's branch that were ever reset. */
export async function selectResets(sql: Sql, endpointId: EndpointId): Promise<{ role: string; resetAt: Date }[]> {
  return sql<{ role: string; resetAt: Date }[]>`
    select r.name as role, r.reset_at from roles r join endpoints e on e.branch_id = r.branch_id
    where e.id = ${endpointId} and r.reset_at is not null and r.dropped_at is null`;
}

/** Marks as applied only what has not changed since it was read. */
export async function markRoleApplied(sql: Sql, row: RoleRow): Promise<void> {
  if (row.droppedAt !== null) {
    await sql`delete from roles where id = ${row.id}`;
    return;
  }
  await sql`
    update roles set applied = true, pending = (revision <> ${row.revision}),
      held_verifier = case when revision <> ${row.revision} then ${row.verifier} end
    where id = ${row.id}`;
}

export async function copyRoles(sql: Sql, from: BranchId, to: BranchId): Promise<RoleRow[]> {
  return sql<RoleRow[]>`
    insert into roles (branch_id, name, verifier, password, no_login, protected, limited, applied, pending, dropped_at)
    select ${to}, name, verifier, password, no_login, protected, limited, applied, pending, dropped_at from roles
    where branch_id = ${from} order by id returning *`;
}

/**
 * Changes that were pending when a branch's rows were copied, and that its parent's server had carried out when its
 * data was: the copy holds them.
 */
export async function confirmCopiedRoles(sql: Sql, from: BranchId, to: BranchId): Promise<void> {
  await sql`
    update roles r set applied = true, pending = false from roles o
    where r.branch_id = ${to} and r.pending and r.dropped_at is null
      and o.branch_id = ${from} and o.applied
      and (not o.pending or o.held_verifier is not null or o.dropped_at is not null)
      and o.name = r.name and coalesce(o.held_verifier, o.verifier) is not distinct from r.verifier
      and o.limited = r.limited`;
  await sql`
    delete from roles r where branch_id = ${to} and pending and dropped_at is not null and not exists (
      select 1 from roles o where o.branch_id = ${from} and o.name = r.name and o.dropped_at is not null)`;
}

/** For a copy of the past, to which changes that wait for the server of today do not belong. */
export async function deletePendingRoles(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`delete from roles where branch_id = ${branchId} and pending`;
}

/** Includes those marked dropped, for a copy of a whole branch. */
export async function selectAllRoles(sql: Sql, branchId: BranchId): Promise<RoleRow[]> {
  return sql<RoleRow[]>`select * from roles where branch_id = ${branchId} order by id`;
}

/** Moves them to another branch, or deletes them if `to` is null. */
export async function moveRoles(sql: Sql, from: BranchId, to: BranchId | null): Promise<void> {
  if (to === null) await sql`delete from roles where branch_id = ${from}`;
  else await sql`update roles set branch_id = ${to} where branch_id = ${from}`;
}

export async function deleteRoleRow(sql: Sql, id: number): Promise<void> {
  await sql`delete from roles where id = ${id}`;
}

/**
 * Gives roles that were found in a server the passwords that the project has on record for the same verifiers, which
 * are salted: no other password has them.
 */
export async function recallPasswords(sql: Sql, projectId: ProjectId, branchId: BranchId): Promise<void> {
  await sql`
    update roles r set password = o.password
    from roles o join branches b on b.id = o.branch_id
    where r.branch_id = ${branchId} and r.password is null and not r.pending
      and b.project_id = ${projectId} and o.name = r.name and o.verifier = r.verifier and o.password is not null`;
}
