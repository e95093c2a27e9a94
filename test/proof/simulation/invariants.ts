/**
 * What must be true when a schedule has ended and nothing is left to do, whatever went wrong in it: operations have
 * ended in their order, the rows say what the driver's world holds, and what was acknowledged is there.
 */
import type { FakeBranch } from '../../../src/compute/fake/branch.ts';
import { endpointKey } from '../../../src/core/operation.ts';
import type { BranchRow } from '../../../src/db/branches.ts';
import type { DatabaseRow } from '../../../src/db/databases.ts';
import type { EndpointRow } from '../../../src/db/endpoints.ts';
import type { OperationRow } from '../../../src/db/operations.ts';
import type { RoleRow } from '../../../src/db/roles.ts';
import { nameOf } from './commands.ts';
import { refusal } from './gated-driver.ts';
import type { World } from './world.ts';

export interface Rows {
  readonly operations: readonly OperationRow[];
  readonly branches: readonly BranchRow[];
  readonly endpoints: readonly EndpointRow[];
  readonly roles: readonly RoleRow[];
  readonly databases: readonly DatabaseRow[];
  readonly snapshots: readonly { readonly id: string; readonly currentState: string }[];
  readonly projects: readonly { readonly deletingAt: Date | null; readonly recoverableUntil: Date | null }[];
}

/** All in one round trip's time; nobody writes any more. */
export async function readRows({ ground: { control: sql } }: World): Promise<Rows> {
  const [operations, branches, endpoints, roles, databases, snapshots, projects] = await Promise.all([
    sql<OperationRow[]>`select * from operations order by sequence`,
    sql<BranchRow[]>`select * from branches`,
    sql<EndpointRow[]>`select * from endpoints`,
    sql<RoleRow[]>`select * from roles`,
    sql<DatabaseRow[]>`select * from databases`,
    sql<{ id: string; currentState: string }[]>`select id, current_state from snapshots`,
    sql<{ deletingAt: Date | null; recoverableUntil: Date | null }[]>`
      select deleting_at, recoverable_until from projects`,
  ]);
  return { operations, branches, endpoints, roles, databases, snapshots, projects };
}

/** What is wrong, in words without ids, so that two schedules that find the same thing say the same. */
export function findViolations(world: World, rows: Rows): string[] {
  return [
    ...world.violations,
    ...checkOperations(rows),
    ...checkEndpoints(world, rows),
    ...checkData(world, rows),
    ...checkCatalogs(world, rows),
    ...checkPromises(world, rows),
  ];
}

const ended = ['finished', 'error', 'cancelled', 'skipped'];

function* checkOperations({ operations }: Rows) {
  for (const { job, step, status, lease } of operations) {
    if (!ended.includes(status)) yield `${job} is ${status} for ever, in its step ${step}`;
    else if (lease !== null) yield `${job} is ${status} and leased`;
  }
  for (const [index, later] of operations.entries()) {
    for (const earlier of operations.slice(0, index)) {
      const isBehind = earlier.exclusiveKeys.some((key) => later.exclusiveKeys.includes(key));
      const [first, second] = [earlier.finishedAt, later.finishedAt];
      if (!isBehind || later.status !== 'finished' || first === null || second === null) continue;
      if (first > second) yield `${later.job} has finished before ${earlier.job}, behind which it was queued`;
    }
  }
}

function* checkEndpoints({ driver }: World, { endpoints, branches, projects }: Rows) {
  for (const [id, { process, ref }] of driver.computes) {
    const row = endpoints.find((endpoint) => endpoint.id === id);
    if (row === undefined) yield 'the driver has a compute that no row names';
    else if (process !== null && row.branchId !== ref.branchId)
      yield 'a server serves another branch than its row says';
  }
  const isProjectDeleted = projects.some(({ deletingAt }) => deletingAt !== null);
  for (const {
    id,
    currentState,
    pendingState,
    address,
    generation,
    deletingAt,
    recoverableUntil,
    branchId,
    type,
  } of endpoints) {
    const running = driver.computes.get(id)?.process ?? null;
    if (deletingAt !== null && recoverableUntil === null) {
      yield 'a compute that was deleted for good is still there';
      continue;
    }
    const isDeleted = isProjectDeleted || deletingAt !== null;
    if (isDeleted && running !== null) yield 'a deleted compute is awake';
    if (pendingState !== null) yield `a compute is ${currentState} and about to be ${pendingState} for ever`;
    if ((currentState === 'active') !== (running !== null)) {
      yield `a compute is ${currentState} and its server ${running === null ? 'does not run' : 'runs'}`;
    }
    if (running !== null && running.generation !== generation) yield 'a server runs under an old generation';
    if (currentState === 'active' && address === null) yield 'an active compute has no route';
    if (currentState !== 'active' && address !== null) yield 'a sleeping compute has a route';
    if (
      type === 'read_write' &&
      running !== null &&
      branches.find(({ id: of }) => of === branchId)?.currentState !== 'ready'
    )
      yield 'a server serves a branch that is not ready';
  }
  for (const id of driver.replicas.keys()) {
    if (!endpoints.some((endpoint) => endpoint.id === id)) yield 'the driver has data of a replica that no row names';
  }
}

function* checkData({ driver }: World, { branches, snapshots, projects }: Rows) {
  for (const id of driver.branches.keys()) {
    const isKnown = branches.some((branch) => branch.id === id) || snapshots.some((snapshot) => snapshot.id === id);
    if (!isKnown) yield 'the driver has data that no row names';
  }
  for (const { id, currentState, pendingState, deletingAt, recoverableUntil } of branches) {
    if (deletingAt !== null && recoverableUntil === null) yield 'a branch that was deleted for good is still there';
    if (currentState === 'ready' && !driver.branches.has(id)) yield 'a branch is ready and has no data';
    if (currentState === 'resetting') yield 'a branch is being reset for ever';
    if (deletingAt === null && pendingState !== null) yield `a branch is about to be ${pendingState} for ever`;
  }
  for (const { id, currentState } of snapshots) {
    if (currentState === 'ready' && !driver.branches.has(id)) yield 'a snapshot is ready and has no data';
  }
  if (projects.some(({ deletingAt, recoverableUntil }) => deletingAt !== null && recoverableUntil === null)) {
    yield 'a project that was deleted for good is still there';
  }
}

function* checkCatalogs(world: World, rows: Rows) {
  const { driver } = world;
  for (const branch of rows.branches) {
    const held = driver.branches.get(branch.id);
    if (branch.currentState !== 'ready' || held === undefined) continue;
    const primary = rows.endpoints.find(
      ({ branchId, type, deletingAt }) => branchId === branch.id && type === 'read_write' && deletingAt === null,
    );
    const isRunning = primary !== undefined && driver.computes.get(primary.id)?.process != null;
    // A server that died or was never started may hold something else; its next start looks.
    if (isRunning || branch.catalogKept) yield* compareCatalog(branch, held, rows);
    yield* checkPending(branch, held, primary, rows);
    if (isRunning && wasRefusedOnly(world, branch, rows)) yield* checkTakenBack(branch, rows);
  }
}

/** A row that is still to be applied may be in the server already, by way of the data that was copied. */
function* compareCatalog(branch: BranchRow, held: FakeBranch, { roles, databases }: Rows) {
  const ownRoles = roles.filter(({ branchId }) => branchId === branch.id);
  const ownDatabases = databases.filter(({ branchId }) => branchId === branch.id);
  for (const { name, applied, pending, verifier } of ownRoles) {
    const there = held.roles.get(name);
    if (there === undefined && applied) yield 'a role is in its row, and not in the server';
    if (there === undefined || pending || there.verifier === verifier) continue;
    yield 'a role has another password in its server than in its row';
  }
  for (const name of held.roles.keys()) {
    if (!ownRoles.some((role) => role.name === name)) yield 'a server has a role that no row names';
  }
  for (const { appliedName } of ownDatabases) {
    if (appliedName !== null && !held.databases.has(appliedName))
      yield 'a database is in its row, and not in the server';
  }
  for (const name of held.databases.keys()) {
    const isNamed = ownDatabases.some((row) => row.appliedName === name || row.name === name);
    if (!isNamed) yield 'a server has a database that no row names';
  }
}

/**
 * A change waits only where the operation that was to carry it out, on this very branch or on one that it comes from,
 * has failed or was cancelled; or for a compute, and then the data does not hold it yet.
 */
function* checkPending(branch: BranchRow, held: FakeBranch, primary: EndpointRow | undefined, rows: Rows) {
  if (primary?.disabled || branch.deletingAt !== null) return;
  const line = lineOf(branch, rows);
  const isExcused = rows.operations.some(
    ({ status, branchId }) => isFailed(status) && branchId !== null && line.has(branchId),
  );
  if (isExcused) return;
  // A compute that was moved here sleeps, and so does that of a restored snapshot: what had no compute before waits for
  // its next start.
  const hasMoved = rows.operations.some(
    ({ exclusiveKeys }) =>
      primary !== undefined &&
      exclusiveKeys.includes(endpointKey(primary.id)) &&
      exclusiveKeys.filter(isOfBranch).length > 1,
  );
  // A restore brings what was pending on its source, and wakes nobody who slept.
  const last = rows.operations.findLast(
    ({ job, branchId, endpointId }) =>
      (job === 'restore_branch' && branchId === branch.id) ||
      (['start_compute', 'apply_config'].includes(job) && endpointId === primary?.id),
  );
  const wasRestored = last?.job === 'restore_branch';
  const mayWait = primary?.currentState === 'idle' && (hasMoved || wasRestored || primary.startedAt === null);
  const isAwaited = primary !== undefined && !mayWait;
  const isLeft = (row: RoleRow | DatabaseRow, isThere: boolean) => {
    const isCarriedOut = isThere === (row.droppedAt === null);
    return row.branchId === branch.id && row.pending && (isAwaited || isCarriedOut);
  };
  if (rows.roles.some((row) => isLeft(row, held.roles.get(row.name)?.verifier === row.verifier))) {
    yield 'a change of a role is left';
  }
  if (rows.databases.some((row) => isLeft(row, held.databases.has(row.name)))) {
    yield 'a change of a database is left';
  }
}

/** A branch and those that it was copied from, one after the other. */
function lineOf(branch: BranchRow, { branches }: Rows): ReadonlySet<string> {
  const line = new Set<string>();
  for (let id: string | null = branch.id; id !== null && !line.has(id); ) {
    line.add(id);
    id = branches.find((other) => other.id === id)?.parentId ?? null;
  }
  return line;
}

/** A server has refused a change, nothing else went wrong, and so Catnap could look at what the server held then. */
function wasRefusedOnly({ counts }: World, branch: BranchRow, { operations }: Rows): boolean {
  const failed = operations.filter(({ status, branchId }) => isFailed(status) && branchId === branch.id);
  const isOneRefusal = failed.length === 1 && failed[0]?.error?.includes(refusal) === true;
  return isOneRefusal && counts.faults === 1 && counts.crashes + counts.stalls === 0;
}

/** What was refused is taken back; otherwise every later change of the branch would fail at it too. */
function* checkTakenBack(branch: BranchRow, { databases }: Rows) {
  for (const { branchId, pending, appliedName } of databases) {
    if (branchId === branch.id && pending && appliedName !== null) yield 'a refused change of a database is left';
  }
}

/** Whatever moves a compute, alone or with its branch, holds two of them. */
const isOfBranch = (key: string) => key.startsWith('branch:');

const isFailed = (status: string) => ['error', 'cancelled', 'skipped'].includes(status);

function* checkPromises({ known }: World, { branches, endpoints, roles, databases, projects }: Rows) {
  if (known.doubtful.has(known.projectId)) return;
  if (projects.length !== 1) yield 'the project is gone';
  const isDoubtful = (name: string) => known.doubtful.has(name);
  for (const { id, branchId } of endpoints) if (isDoubtful(branchId)) known.doubtful.add(id);
  const there = new Set([
    ...branches.map(({ id }) => id),
    ...endpoints.map(({ id }) => id),
    ...[...roles, ...databases].filter(({ droppedAt }) => droppedAt === null).map(nameOf),
  ]);
  for (const name of known.promised) {
    const [branchId = ''] = name.split('/');
    if (there.has(name as never) || isDoubtful(name) || isDoubtful(branchId)) continue;
    // Computes of a branch that was removed went with it.
    if (name.startsWith('ep-') && known.branches.some(isDoubtful)) continue;
    yield `what was acknowledged is gone: ${name.includes('/') ? 'a role or database' : name.slice(0, 2)}`;
  }
}
