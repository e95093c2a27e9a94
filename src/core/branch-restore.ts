/**
 * Restore of a branch: its data becomes that of another branch's head, or of a moment in the past of any branch, itself
 * included. It keeps its id, its name, its computes and their host names. Only intent is written here; the operation
 * copies first and exchanges the data last, so a restore that fails leaves the branch as it was.
 */
import { insertBranch, moveChildren, selectChildren, updateBranch } from '../db/branches.ts';
import { selectEndpoints, selectReadWriteEndpoint } from '../db/endpoints.ts';
import { CatnapError, withDetails } from '../lib/errors.ts';
import { type BranchId, newBranchId, type ProjectId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProjectLocked } from './access.ts';
import { type Branch, namesOf, requireFreeBranchName, requireNotResetting } from './branch.ts';
import { requireRoomForBranch } from './branch-create.ts';
import type { CommandScope } from './context.ts';
import { isOrWillBe } from './endpoint.ts';
import { isMomentGiven, type ResolvedMoment, resolveMoment } from './moments.ts';
import {
  branchKey,
  computeKeys,
  endpointKey,
  enqueue,
  historyKey,
  type Operation,
  requireRoomInQueue,
} from './operation.ts';

export interface RestoreInput {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly sourceId: BranchId;
  /** Name of a new branch that keeps the current data. */
  readonly preserveUnderName: string | null;
  readonly sourceLsn?: string | undefined;
  readonly sourceTimestamp?: string | undefined;
}

export interface RestoreResult {
  readonly branch: Branch;
  readonly operations: readonly Operation[];
}

export async function restoreBranch(scope: CommandScope, caller: Caller, input: RestoreInput): Promise<RestoreResult> {
  const { projectId, branchId, sourceId } = input;
  const project = await requireProjectLocked(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  const source = await requireBranch(scope, projectId, sourceId);
  await requireRestorable(scope, branch, source, input.preserveUnderName);
  const past = await findPast(scope, source, input);
  await requireRoomInQueue(scope, projectId);
  let backup: Branch | null = null;
  if (input.preserveUnderName !== null) {
    await requireFreeBranchName(scope, projectId, input.preserveUnderName, 'body.preserve_under_name');
    await requireRoomForBranch(scope, project);
    backup = await insertBackup(scope, caller, branch, input.preserveUnderName);
    await moveChildren(scope.tx, branch.id, backup.id);
  }
  const resetting = await updateBranch(scope.tx, branch.id, {
    currentState: 'resetting',
    pendingState: 'ready',
    // A root stays a root, so that the branch it was restored from can still be deleted.
    // The past of a branch that is restored to it is that of the data it had, which the backup keeps.
    ...(branch.parentId === null ? {} : { parentId: source.id === branch.id ? (backup?.id ?? null) : source.id }),
  });
  return { branch: resetting, operations: await queueRestore(scope, branch, source, { backup, past }) };
}

/** Null for the head of the source. */
async function findPast(scope: CommandScope, source: Branch, input: RestoreInput): Promise<ResolvedMoment | null> {
  const { sourceLsn: lsn, sourceTimestamp: timestamp } = input;
  const fields = { lsn: 'body.source_lsn', timestamp: 'body.source_timestamp' };
  if (source.id !== input.branchId && !isMomentGiven({ lsn, timestamp })) return null;
  const past = await resolveMoment(scope, source, { lsn, timestamp }, fields);
  if (source.id === input.branchId && input.preserveUnderName === null) {
    const message = 'preserve_under_name is required for a branch that is restored from its own past';
    throw new CatnapError('unprocessable', message);
  }
  return past;
}

async function requireRestorable(
  scope: CommandScope,
  branch: Branch,
  source: Branch,
  preserveUnderName: string | null,
): Promise<void> {
  const refuse = (reason: string) => new CatnapError('unprocessable', reason);
  if (branch.protected) throw refuse('cannot restore protected branch');
  requireNotResetting(branch);
  requireNotResetting(source);
  if (branch.currentState !== 'ready') throw refuse('cannot restore a branch that has no data yet');
  if (source.currentState !== 'ready' && source.pendingState === null) {
    throw refuse('body.source_branch_id names a branch that has no data');
  }
  const isNewParent = source.id !== branch.id && branch.parentId !== null && branch.parentId !== source.id;
  if (source.expiresAt !== null && isNewParent) {
    throw refuse('a branch that expires cannot have children: restore from another one, or clear its expires_at');
  }
  const children = (await selectChildren(scope.tx, branch.id)).filter((child) => child.deletingAt === null);
  if (children.length > 0 && preserveUnderName === null) {
    const message = 'preserve_under_name is required for a branch that has children, which move to the branch it names';
    throw refuse(withDetails(message, { children: namesOf(children) }));
  }
}

/** The backup takes over the branch's record of where its data came from. It is not ready until it has the data. */
async function insertBackup(scope: CommandScope, caller: Caller, branch: Branch, name: string): Promise<Branch> {
  const { projectId, parentId, parentTimestamp, parentLsn, initSource } = branch;
  const { id } = await insertBranch(scope.tx, {
    id: newBranchId(),
    projectId,
    name,
    parentId,
    parentTimestamp,
    initSource,
    isDefault: false,
    protected: false,
    expiresAt: null,
    annotation: {},
    createdBy: caller.userId,
  });
  return updateBranch(scope.tx, id, { currentState: 'resetting', pendingState: 'ready', parentLsn });
}

/** The source may go on serving, as for a new branch. Computes that are awake are started again after the restore. */
async function queueRestore(
  scope: CommandScope,
  branch: Branch,
  source: Branch,
  { backup, past }: { readonly backup: Branch | null; readonly past: ResolvedMoment | null },
): Promise<Operation[]> {
  const { projectId } = branch;
  const endpoints = await selectEndpoints(scope.tx, projectId, branch.id);
  const exclusive = [
    branchKey(branch.id),
    historyKey(branch.id),
    ...(backup === null ? [] : [branchKey(backup.id)]),
    ...endpoints.map(({ id }) => endpointKey(id)),
  ];
  const shared = past === null ? await keysOfHead(scope, source) : [historyKey(past.branchId)];
  const restore = await enqueue(scope, 'restore_branch', {
    projectId,
    branchId: branch.id,
    exclusive,
    shared: shared.filter((key) => !exclusive.includes(key)),
    // `staging` is the driver's name for the copy until it replaces the branch's data.
    state: {
      source: source.id,
      staging: newBranchId(),
      backup: backup?.id ?? null,
      parent: branch.parentId,
      ...(past && { past: { ...past } }),
    },
  });
  const awake = endpoints.filter((endpoint) => isOrWillBe(endpoint, 'active') && !endpoint.disabled);
  // The primary first: replicas are copied from it.
  awake.sort((a, b) => Number(a.type === 'read_only') - Number(b.type === 'read_only'));
  const starts: Operation[] = [];
  for (const endpoint of awake) {
    starts.push(await enqueue(scope, 'start_compute', { ...computeKeys(endpoint), state: { follows: restore.id } }));
  }
  return [restore, ...starts];
}

async function keysOfHead(scope: CommandScope, source: Branch): Promise<string[]> {
  const compute = await selectReadWriteEndpoint(scope.tx, source.id);
  return [branchKey(source.id), ...(compute === undefined ? [] : [endpointKey(compute.id)])];
}
