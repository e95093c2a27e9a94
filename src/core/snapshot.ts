/**
 * Snapshots: taken of a branch's head or of a moment in its past, listed, renamed, given an expiry, deleted. The data
 * of a snapshot is a branch directory that nothing serves, so it needs no branch to exist. Only intent is written here;
 * operations make and remove the data.
 */
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import { cancelOperations } from '../db/operations.ts';
import type { ProjectRow } from '../db/projects.ts';
import {
  countSnapshots,
  insertSnapshot,
  isSlugTaken,
  type SnapshotRow,
  selectSnapshot,
  selectSnapshots,
  updateSnapshot,
} from '../db/snapshots.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import { asBranchId, type BranchId, newSnapshotId, type ProjectId, type SnapshotId } from '../lib/ids.ts';
import { readTime } from '../lib/moments.ts';
import { type Caller, planOfProject, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import { type Branch, requireNotResetting } from './branch.ts';
import type { CommandScope, Scope } from './context.ts';
import { isMomentGiven, type MomentInput, type ResolvedMoment, resolveMoment } from './moments.ts';
import { branchKey, endpointKey, enqueue, historyKey, type Operation, requireRoomInQueue } from './operation.ts';

export type Snapshot = SnapshotRow;

export interface SnapshotInput extends MomentInput {
  readonly name?: string | undefined;
  readonly slug?: string | undefined;
  readonly expiresAt?: string | undefined;
}

export interface SnapshotResult {
  readonly snapshot: Snapshot;
  readonly operations: readonly Operation[];
}

/** The name under which a driver keeps the data of a snapshot. */
export const dataOf = (id: SnapshotId) => asBranchId(id);

export async function listSnapshots(scope: Scope, caller: Caller, projectId: ProjectId): Promise<Snapshot[]> {
  await requireProject(scope, caller, projectId);
  return selectSnapshots(scope.sql, projectId);
}

export async function createSnapshot(
  scope: CommandScope,
  caller: Caller,
  { projectId, branchId }: { readonly projectId: ProjectId; readonly branchId: BranchId },
  input: SnapshotInput,
): Promise<SnapshotResult> {
  const project = await requireProjectLocked(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  const expiresAt = input.expiresAt === undefined ? null : readExpiry(scope, input.expiresAt, 'query.expires_at');
  return queueSnapshot(scope, project, branch, { ...input, expiresAt, manual: true });
}

interface Wish extends MomentInput {
  readonly name?: string | undefined;
  readonly slug?: string | undefined;
  readonly expiresAt: Date | null;
  readonly manual: boolean;
}

/** Also for schedules. Refuses before it writes anything. The caller holds the project. */
export async function queueSnapshot(
  scope: CommandScope,
  project: ProjectRow,
  branch: Branch,
  wish: Wish,
): Promise<SnapshotResult> {
  const past = isMomentGiven(wish) ? await resolveMoment(scope, branch, wish, momentFields) : null;
  if (past === null) {
    requireNotResetting(branch);
    if (branch.currentState !== 'ready' && branch.pendingState === null) {
      throw new CatnapError('unprocessable', 'the branch has no data to take a snapshot of');
    }
  }
  await requireRoomForSnapshot(scope, project);
  await requireRoomInQueue(scope, project.id);
  const id = newSnapshotId();
  const slug = wish.slug ?? id;
  if (await isSlugTaken(scope.tx, project.id, slug)) {
    throw new CatnapError('conflict', withDetails('snapshot already exists', { slug }));
  }
  const createdAt = scope.clock.now();
  const snapshot = await insertSnapshot(scope.tx, {
    id,
    projectId: project.id,
    name: wish.name ?? `${branch.name.slice(0, nameMax - 21)} ${secondsOf(createdAt)}`,
    slug,
    sourceBranchId: branch.id,
    manual: wish.manual,
    expiresAt: wish.expiresAt,
    createdAt,
  });
  const operation = await enqueue(scope, 'create_snapshot', {
    projectId: project.id,
    branchId: branch.id,
    exclusive: [branchKey(dataOf(id))],
    shared: await keysOfSource(scope, branch, past),
    state: { snapshot: id, ...(past !== null && { past: { ...past } }) },
  });
  return { snapshot, operations: [operation] };
}

/**
 * As for a new branch: the source keeps serving, but cannot start, stop or be deleted until it is copied. A moment of
 * the past needs a history alone.
 */
async function keysOfSource(scope: CommandScope, branch: Branch, past: ResolvedMoment | null): Promise<string[]> {
  if (past !== null) return [historyKey(past.branchId)];
  const compute = await selectReadWriteEndpoint(scope.tx, branch.id);
  return [branchKey(branch.id), ...(compute === undefined ? [] : [endpointKey(compute.id)])];
}

const momentFields = { lsn: 'query.lsn', timestamp: 'query.timestamp' };

/** Of the database's `name`, which the API bounds too. */
const nameMax = 256;

export const secondsOf = (date: Date) => `${date.toISOString().slice(0, 19)}Z`;

async function requireRoomForSnapshot(scope: CommandScope, project: ProjectRow): Promise<void> {
  const { snapshotsPerProjectMax: limit } = await planOfProject(scope, project);
  if ((await countSnapshots(scope.tx, project.id)) >= limit) {
    throw new CatnapError('snapshots_limit', withDetails('snapshots limit exceeded', { limit }));
  }
}

function readExpiry(scope: Scope, text: string, field: string): Date {
  const time = readTime(text);
  if (time === null) throw invalid(`invalid request: ${field} must be a time such as 2026-01-31T12:00:00Z`);
  const expiresAt = new Date(time);
  if (expiresAt <= scope.clock.now()) throw invalid(`invalid request: ${field} must be in the future`);
  return expiresAt;
}

export interface SnapshotAddress {
  readonly projectId: ProjectId;
  readonly snapshotId: SnapshotId;
}

export async function requireSnapshot(scope: Scope, { projectId, snapshotId }: SnapshotAddress): Promise<Snapshot> {
  const snapshot = await selectSnapshot(scope.sql, projectId, snapshotId);
  if (snapshot === undefined) throw notFound('snapshot');
  return snapshot;
}

export async function updateSnapshotOf(
  scope: CommandScope,
  caller: Caller,
  address: SnapshotAddress,
  change: { readonly name?: string | undefined; readonly expiresAt?: string | null | undefined },
): Promise<Snapshot> {
  await requireProjectLocked(scope, caller, address.projectId);
  const { id } = await requireSnapshot(scope, address);
  const { name, expiresAt } = change;
  const expiry = typeof expiresAt === 'string' ? readExpiry(scope, expiresAt, 'body.snapshot.expires_at') : expiresAt;
  return updateSnapshot(scope.tx, id, {
    ...(name !== undefined && { name }),
    ...(expiry !== undefined && { expiresAt: expiry }),
  });
}

export async function deleteSnapshot(
  scope: CommandScope,
  caller: Caller,
  address: SnapshotAddress,
): Promise<readonly Operation[]> {
  await requireProjectLocked(scope, caller, address.projectId);
  return [await queueSnapshotDeletion(scope, await requireSnapshot(scope, address))];
}

/** Also for those that expire. It leaves the list at once; restores that were asked for before still get its data. */
export async function queueSnapshotDeletion(scope: CommandScope, { id, projectId }: Snapshot): Promise<Operation> {
  await cancelOperations(scope.tx, projectId, { snapshotId: id, except: ['delete_snapshot', 'restore_snapshot'] });
  await updateSnapshot(scope.tx, id, { deletingAt: scope.clock.now() });
  const exclusive = [branchKey(dataOf(id))];
  return enqueue(scope, 'delete_snapshot', { projectId, exclusive, state: { snapshot: id } });
}
