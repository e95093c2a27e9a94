/**
 * Restores a snapshot. It always becomes a new branch, a root, since it has no parent's data. In a second step, at once
 * or when somebody has looked at it, the new branch takes the place of another one: its name, its computes with their
 * hosts, and what else makes a branch known. The other branch keeps its data under another name.
 */
import { insertBranch, isBranchNameTaken, selectBranch, updateBranch } from '../db/branches.ts';
import { selectEndpoints } from '../db/endpoints.ts';
import { CatnapError, invalid, withDetails } from '../lib/errors.ts';
import { type BranchId, newBranchId, type ProjectId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProjectLocked } from './access.ts';
import { type Branch, requireFreeBranchName, requireNotResetting } from './branch.ts';
import { requireRoomForBranch } from './branch-create.ts';
import type { CommandScope } from './context.ts';
import { type Endpoint, insertSleepingEndpoint, isOrWillBe } from './endpoint.ts';
import { branchKey, computeKeys, endpointKey, enqueue, type Operation, requireRoomInQueue } from './operation.ts';
import { dataOf, requireSnapshot, type Snapshot, type SnapshotAddress, secondsOf } from './snapshot.ts';

export interface SnapshotRestoreInput {
  readonly name?: string | undefined;
  readonly targetBranchId?: BranchId | undefined;
  readonly finalize: boolean;
}

export interface RestoredSnapshot {
  readonly branch: Branch;
  /** A new compute, asleep, to look at the data with; or, if the restore is finalized, those that will move. */
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
}

export async function restoreSnapshot(
  scope: CommandScope,
  caller: Caller,
  address: SnapshotAddress,
  input: SnapshotRestoreInput,
): Promise<RestoredSnapshot> {
  const project = await requireProjectLocked(scope, caller, address.projectId);
  const snapshot = await requireSnapshot(scope, address);
  const target = await findTarget(scope, snapshot, input);
  if (input.finalize && target !== undefined) requireReplaceable(target);
  await requireRoomInQueue(scope, project.id);
  await requireRoomForBranch(scope, project);
  const id = newBranchId();
  if (input.name !== undefined) await requireFreeBranchName(scope, project.id, input.name, 'body.name');
  const inserted = await insertBranch(scope.tx, {
    id,
    projectId: project.id,
    name: input.name ?? (await freeName(scope, project.id, `${target?.name ?? snapshot.name}_restored`)),
    parentId: null,
    parentTimestamp: null,
    isDefault: false,
    protected: false,
    initSource: 'parent-data',
    expiresAt: null,
    annotation: {},
    createdBy: caller.userId,
  });
  const branch = await updateBranch(scope.tx, id, {
    currentState: 'resetting',
    restoredFrom: snapshot.id,
    restoredAs: target?.id ?? null,
    restoreStatus: 'restored',
  });
  const copy = await enqueue(scope, 'restore_snapshot', {
    projectId: project.id,
    branchId: inserted.id,
    exclusive: [branchKey(inserted.id)],
    shared: [branchKey(dataOf(snapshot.id))],
    state: { snapshot: snapshot.id, ...(input.finalize && { finalize: true }) },
  });
  if (!input.finalize || target === undefined) {
    const endpoint = await insertSleepingEndpoint(scope, project, branch, { type: 'read_write' });
    return { branch, endpoints: [endpoint], operations: [copy] };
  }
  const { endpoints, operations } = await queueFinalize(scope, branch, target, null);
  return { branch, endpoints, operations: [copy, ...operations] };
}

/** Without a name for it, the branch that the snapshot was taken of; it may be deleted, and then there is none. */
async function findTarget(
  scope: CommandScope,
  snapshot: Snapshot,
  { targetBranchId, finalize }: SnapshotRestoreInput,
): Promise<Branch | undefined> {
  if (targetBranchId !== undefined) return requireBranch(scope, snapshot.projectId, targetBranchId);
  const source = await selectBranch(scope.tx, snapshot.projectId, snapshot.sourceBranchId);
  if (source === undefined && finalize) {
    throw new CatnapError(
      'unprocessable',
      'the branch that the snapshot was taken of is gone: name the one to replace in target_branch_id, or leave finalize_restore out',
    );
  }
  return source;
}

/** As for a restore to another branch. */
function requireReplaceable(target: Branch): void {
  if (target.protected) {
    throw new CatnapError('unprocessable', withDetails('cannot replace protected branch', { branch_id: target.id }));
  }
  requireNotResetting(target);
  if (target.currentState === 'ready') return;
  const message = 'cannot replace a branch that has no data yet';
  throw new CatnapError('unprocessable', withDetails(message, { branch_id: target.id }));
}

export async function finalizeRestore(
  scope: CommandScope,
  caller: Caller,
  address: { readonly projectId: ProjectId; readonly branchId: BranchId },
  keptName: string | null,
): Promise<readonly Operation[]> {
  const { projectId } = address;
  await requireProjectLocked(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, address.branchId);
  const target = await requireUnfinalized(scope, branch);
  requireNotResetting(branch);
  requireReplaceable(target);
  if (branch.currentState !== 'ready') throw new CatnapError('unprocessable', 'the branch has no data');
  if (keptName !== null) await requireFreeBranchName(scope, projectId, keptName, 'body.name');
  await requireRoomInQueue(scope, projectId);
  await updateBranch(scope.tx, branch.id, { currentState: 'resetting', pendingState: 'ready' });
  return (await queueFinalize(scope, branch, target, keptName)).operations;
}

async function requireUnfinalized(scope: CommandScope, branch: Branch): Promise<Branch> {
  const refuse = (reason: string) => new CatnapError('unprocessable', reason);
  if (branch.restoreStatus === 'finalized') throw refuse('the restore of this branch is already finalized');
  if (branch.restoreStatus === null) throw refuse('only a branch that was restored from a snapshot can be finalized');
  const target = branch.restoredAs && (await selectBranch(scope.tx, branch.projectId, branch.restoredAs));
  if (!target) throw refuse('there is no branch to replace: it was deleted, or the restore named none');
  if (target.id === branch.id) throw invalid('invalid request: a branch cannot replace itself');
  return target;
}

/** Both are held, with their computes. Those that are awake are started again on the restored branch. */
async function queueFinalize(
  scope: CommandScope,
  branch: Branch,
  target: Branch,
  keptName: string | null,
): Promise<{ readonly endpoints: readonly Endpoint[]; readonly operations: readonly Operation[] }> {
  const { projectId } = branch;
  await updateBranch(scope.tx, target.id, { currentState: 'resetting', pendingState: 'ready' });
  const moving = await selectEndpoints(scope.tx, projectId, target.id);
  const own = await selectEndpoints(scope.tx, projectId, branch.id);
  const finalize = await enqueue(scope, 'finalize_restore', {
    projectId,
    branchId: branch.id,
    exclusive: [branchKey(branch.id), branchKey(target.id), ...[...moving, ...own].map(({ id }) => endpointKey(id))],
    state: { target: target.id, kept_name: keptName },
  });
  const awake = moving.filter((endpoint) => isOrWillBe(endpoint, 'active') && !endpoint.disabled);
  // The primary first: replicas are copied from it.
  awake.sort((a, b) => Number(a.type === 'read_only') - Number(b.type === 'read_only'));
  const operations: Operation[] = [finalize];
  for (const endpoint of awake) {
    const moved = { ...endpoint, branchId: branch.id };
    operations.push(await enqueue(scope, 'start_compute', { ...computeKeys(moved), state: { follows: finalize.id } }));
  }
  return { endpoints: moving, operations };
}

const branchNameMax = 256;

/** With the time in it, and a number if that is not enough. */
export async function freeName(
  scope: Pick<CommandScope, 'tx' | 'clock'>,
  projectId: ProjectId,
  wanted: string,
  tries = 1,
): Promise<string> {
  const suffix = `_${secondsOf(scope.clock.now()).replace(/[-:]/g, '')}${tries === 1 ? '' : `_${tries}`}`;
  const name = `${wanted.slice(0, branchNameMax - suffix.length)}${suffix}`;
  return (await isBranchNameTaken(scope.tx, projectId, name)) ? freeName(scope, projectId, wanted, tries + 1) : name;
}
