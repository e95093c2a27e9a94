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
  selectAllDatabases,
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
  selectAllRoles,
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
 * next start applies what is pending. `asked` is the changed row, from `askedFor`: an operation that is given up takes
 * back what it was queued for, and leaves other rows to operations of their own.
 */
export async function queueCatalogChange(scope: CommandScope, branch: BranchRow, asked?: string): Promise<Operation[]> {
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
  const state = asked === undefined ? {} : { asked_for: asked };
  const apply = await enqueue(scope, 'apply_config', { ...options, state });
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

/** All that is on record of a branch, what is to be dropped included. */
export async function selectCatalogRows(sql: Sql, branchId: BranchId): Promise<PendingCatalog> {
  const [roles, databases] = await Promise.all([selectAllRoles(sql, branchId), selectAllDatabases(sql, branchId)]);
  return { roles, databases };
}

/** False when the rows say what the server was seen to hold, apart from what is still pending. */
export function isCatalogNew(rows: PendingCatalog, seen: ServerCatalog): boolean {
  const news = [rolesNews(rows.roles, seen), databasesNews(rows.databases, seen)];
  return news.some(({ added, changed, gone, carriedOut }) => {
    return added.length + changed.length + gone.length + carriedOut.length > 0;
  });
}

/** How what a server was seen to hold differs from the rows. What is still pending is left as it was asked for. */
interface News<Row, Seen> {
  readonly added: readonly Seen[];
  readonly changed: readonly { readonly row: Row; readonly now: Seen }[];
  readonly gone: readonly Row[];
  /**
   * Pending by its row, and there: an operation has carried it out and could not say so, or the data was copied from
   * where it had been.
   */
  readonly carriedOut: readonly Row[];
}

function rolesNews(rows: readonly RoleRow[], { roles }: ServerCatalog) {
  return compare(rows, roles, {
    isSame: (row, now) => row.verifier === now.verifier,
    isApplied: (row) => row.applied,
    // Salted: only the role that was made or reset with it has this verifier.
    isCertain: (row) => row.verifier !== null,
    nameThere: (row) => row.name,
  });
}

function databasesNews(rows: readonly DatabaseRow[], { databases }: ServerCatalog) {
  return compare(rows, databases, {
    isSame: (row, now) => row.ownerName === now.ownerName,
    isApplied: (row) => row.appliedName !== null,
    // Of two, the one with the new name may be anybody's.
    isCertain: (row, names) => row.appliedName === null || row.appliedName === row.name || !names.has(row.appliedName),
    nameThere: (row) => row.appliedName ?? row.name,
  });
}

interface Comparison<Row, Seen> {
  readonly isSame: (row: Row, now: Seen) => boolean;
  readonly isApplied: (row: Row) => boolean;
  /** Whether one that is the same among these names can only be what the row asks for. */
  readonly isCertain: (row: Row, names: ReadonlySet<string>) => boolean;
  /** What the server calls it until the change is carried out. */
  readonly nameThere: (row: Row) => string;
}

/**
 * What is to be dropped, and what is to be renamed, is still there under its old name, and is nothing new. What is to
 * be dropped and is not there was dropped, by an operation that could not say so or by its owner.
 */
function compare<Row extends { name: string; pending: boolean; droppedAt: Date | null }, Seen extends { name: string }>(
  all: readonly Row[],
  seen: readonly Seen[],
  { isSame, isApplied, isCertain, nameThere }: Comparison<Row, Seen>,
): News<Row, Seen> {
  const rows = all.filter(({ droppedAt }) => droppedAt === null);
  const known = new Map(rows.map((row) => [row.name, row]));
  const awaited = new Set(all.filter(({ pending, droppedAt }) => pending || droppedAt !== null).map(nameThere));
  const names = new Set(seen.map(({ name }) => name));
  const pairs = seen.map((now) => ({ row: known.get(now.name), now }));
  return {
    added: pairs.flatMap(({ row, now }) => (row === undefined && !awaited.has(now.name) ? [now] : [])),
    changed: pairs.flatMap(({ row, now }) => (row && !row.pending && !isSame(row, now) ? [{ row, now }] : [])),
    gone: all.filter((row) => {
      if (row.droppedAt !== null) return !names.has(nameThere(row));
      return !names.has(row.name) && isApplied(row) && !row.pending;
    }),
    carriedOut: pairs.flatMap(({ row, now }) =>
      row?.pending && isSame(row, now) && isCertain(row, names) ? [row] : [],
    ),
  };
}

async function recordSeenRoles(sql: Tx, branchId: BranchId, seen: ServerCatalog): Promise<void> {
  const { added, changed, gone, carriedOut } = rolesNews(await selectAllRoles(sql, branchId), seen);
  const noLogin = ({ verifier }: { verifier: string | null }) => verifier === null;
  for (const role of added) {
    await insertRole(sql, { branchId, ...role, password: null, noLogin: noLogin(role), applied: true, pending: false });
  }
  for (const { row, now } of changed) {
    // By SQL: the password we kept is no longer the right one.
    await updateRole(sql, row.id, { verifier: now.verifier, password: null, noLogin: noLogin(now) });
  }
  for (const { id } of gone) await deleteRoleRow(sql, id);
  for (const role of carriedOut) await markRoleApplied(sql, role);
}

async function recordSeenDatabases(sql: Tx, branchId: BranchId, seen: ServerCatalog): Promise<void> {
  const { added, changed, gone, carriedOut } = databasesNews(await selectAllDatabases(sql, branchId), seen);
  for (const database of added) {
    await insertDatabase(sql, { branchId, ...database, appliedName: database.name, pending: false });
  }
  for (const { row, now } of changed) await updateDatabase(sql, row.id, { ownerName: now.ownerName });
  for (const { id } of gone) await deleteDatabaseRow(sql, id);
  for (const database of carriedOut) await markDatabaseApplied(sql, database);
}
