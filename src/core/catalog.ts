/**
 * Roles and databases of a branch as one desired state. A change is written as pending rows; the next operation on the
 * branch's server (`apply_config`, or any start) carries out what is pending and then records what the server reports,
 * because owners also create roles and change passwords by SQL.
 */
import type { BranchRow } from '../db/branches.ts';
import type { Sql, Tx } from '../db/client.ts';
import {
  type DatabaseRow,
  deleteDatabaseRow,
  insertDatabase,
  markDatabaseApplied,
  selectDatabases,
  selectDatabasesToApply,
  updateDatabase,
} from '../db/databases.ts';
import { type EndpointRow, selectReadWriteEndpoint } from '../db/endpoints.ts';
import { countUnfinished } from '../db/operations.ts';
import { selectProject } from '../db/projects.ts';
import {
  deleteRoleRow,
  insertRole,
  markRoleApplied,
  type RoleRow,
  selectRoles,
  selectRolesToApply,
  updateRole,
} from '../db/roles.ts';
import type { BranchId } from '../lib/ids.ts';
import type { ServerCatalog } from '../lib/model.ts';
import { requireNotResetting } from './branch.ts';
import type { CommandScope } from './context.ts';
import { isHeld } from './disk-guard.ts';
import { computeKeys, enqueue, type Operation, requireShortQueue } from './operation.ts';
import { spentQuota } from './quota.ts';

export interface PendingCatalog {
  readonly roles: readonly RoleRow[];
  readonly databases: readonly DatabaseRow[];
}

/**
 * A branch without a compute, or with one that may not be woken (no quota or no disk left), has nothing to run now: the
 * next start applies what is pending.
 */
export async function queueCatalogChange(scope: CommandScope, branch: BranchRow): Promise<Operation[]> {
  requireNotResetting(branch);
  const [endpoint, unfinished] = await Promise.all([
    selectReadWriteEndpoint(scope.tx, branch.id),
    countUnfinished(scope.tx, branch.projectId),
  ]);
  if (endpoint === undefined) return [];
  const wasAsleep = endpoint.currentState === 'idle' && endpoint.pendingState !== 'active';
  if (wasAsleep && (await mayNotWake(scope, endpoint))) return [];
  requireShortQueue(unfinished);
  const options = computeKeys(endpoint);
  const apply = await enqueue(scope, 'apply_config', options);
  // A sleeping compute is woken for the change and put back to sleep after it.
  return wasAsleep ? [apply, await enqueue(scope, 'suspend_compute', options)] : [apply];
}

async function mayNotWake(scope: CommandScope, endpoint: EndpointRow): Promise<boolean> {
  if (isHeld(endpoint)) return true;
  const project = await selectProject(scope.tx, endpoint.projectId);
  return project !== undefined && spentQuota(project, scope.clock.now()) !== null;
}

export async function selectPendingCatalog(sql: Sql, branchId: BranchId): Promise<PendingCatalog> {
  const [roles, databases] = await Promise.all([
    selectRolesToApply(sql, branchId),
    selectDatabasesToApply(sql, branchId),
  ]);
  return { roles, databases };
}

export async function recordCatalog(
  tx: Tx,
  branchId: BranchId,
  applied: PendingCatalog,
  seen: ServerCatalog,
): Promise<void> {
  // Sent together, carried out in this order.
  await Promise.all([
    ...applied.roles.map((role) => markRoleApplied(tx, role)),
    ...applied.databases.map((database) => markDatabaseApplied(tx, database)),
    recordSeenRoles(tx, branchId, seen),
    recordSeenDatabases(tx, branchId, seen),
  ]);
}

async function recordSeenRoles(sql: Tx, branchId: BranchId, seen: ServerCatalog): Promise<void> {
  const known = new Map((await selectRoles(sql, branchId)).map((role) => [role.name, role]));
  for (const role of seen.roles) {
    const row = known.get(role.name);
    known.delete(role.name);
    const noLogin = role.verifier === null;
    if (row === undefined) {
      await insertRole(sql, { branchId, ...role, password: null, noLogin, applied: true, pending: false });
    } else if (!row.pending && row.verifier !== role.verifier) {
      // Changed by SQL: the password we kept is no longer the right one.
      await updateRole(sql, row.id, { verifier: role.verifier, password: null, noLogin });
    }
  }
  for (const gone of known.values()) {
    if (gone.applied && !gone.pending) await deleteRoleRow(sql, gone.id);
  }
}

async function recordSeenDatabases(sql: Tx, branchId: BranchId, seen: ServerCatalog): Promise<void> {
  const known = new Map((await selectDatabases(sql, branchId)).map((database) => [database.name, database]));
  for (const database of seen.databases) {
    const row = known.get(database.name);
    known.delete(database.name);
    if (row === undefined) {
      await insertDatabase(sql, { branchId, ...database, appliedName: database.name, pending: false });
    } else if (!row.pending && row.ownerName !== database.ownerName) {
      await updateDatabase(sql, row.id, { ownerName: database.ownerName });
    }
  }
  for (const gone of known.values()) {
    if (gone.appliedName !== null && !gone.pending) await deleteDatabaseRow(sql, gone.id);
  }
}
