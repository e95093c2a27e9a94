/** Branches: listed, renamed, protected, made the default, deleted. `branch-create.ts` makes them. */
import { detachWithBranch } from '../db/auth-integrations.ts';
import {
  type BranchRow,
  type BranchSort,
  type ChildBranch,
  countBranches,
  countRoots,
  type DeletionMethod,
  isBranchNameTaken,
  selectBranches,
  selectChildren,
  selectDefaultBranch,
  updateBranch,
} from '../db/branches.ts';
import { selectEndpoints, updateEndpoint } from '../db/endpoints.ts';
import { notifyAccessChanged } from '../db/logins.ts';
import { endStorage } from '../db/storage.ts';
import { dayMs } from '../lib/clock.ts';
import { CatnapError, invalid, withDetails } from '../lib/errors.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import type { CommandScope, Scope } from './context.ts';
import { type BranchDeletion, deletionTimes, queueStops, removeBranchForGood } from './deletion.ts';
import { branchKey, cancelStarts, enqueue } from './operation.ts';

export type Branch = BranchRow;

const expiryMaxMs = 30 * dayMs;

export interface BranchPage {
  readonly search: string | null;
  readonly sortBy: BranchSort;
  readonly descending: boolean;
  readonly cursor: { readonly value: string; readonly id: string } | null;
  readonly limit: number | null;
  /** Deleted branches that can be recovered, too. */
  readonly withDeleted: boolean;
}

export async function listBranches(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  page: BranchPage,
): Promise<{
  readonly branches: Branch[];
  readonly next: { readonly value: string; readonly id: string } | null;
}> {
  await requireProject(scope, caller, projectId);
  const rows = await selectBranches(scope.sql, projectId, {
    ...page,
    after: page.cursor,
    deletedAt: page.withDeleted ? scope.clock.now() : null,
    limit: page.limit === null ? null : page.limit + 1,
  });
  const branches = page.limit === null ? rows : rows.slice(0, page.limit);
  const last = rows.length > branches.length ? branches.at(-1) : undefined;
  return { branches, next: last === undefined ? null : { value: last.sortValue, id: last.id } };
}

export async function countBranchesOf(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  search: string | null,
): Promise<number> {
  await requireProject(scope, caller, projectId);
  return countBranches(scope.sql, projectId, search);
}

export async function getBranch(scope: Scope, caller: Caller, projectId: ProjectId, id: BranchId): Promise<Branch> {
  await requireProject(scope, caller, projectId);
  return requireBranch(scope, projectId, id);
}

export async function updateBranchOf(
  scope: CommandScope,
  caller: Caller,
  address: { readonly projectId: ProjectId; readonly branchId: BranchId },
  change: {
    readonly name?: string | undefined;
    readonly protected?: boolean | undefined;
    readonly expiresAt?: Date | null | undefined;
  },
): Promise<Branch> {
  await requireProjectLocked(scope, caller, address.projectId);
  const branch = await requireBranch(scope, address.projectId, address.branchId);
  const { name, expiresAt } = change;
  if (name !== undefined && name !== branch.name) await requireFreeBranchName(scope, address.projectId, name);
  const next = {
    expiresAt: expiresAt === undefined ? branch.expiresAt : expiresAt,
    protected: change.protected ?? branch.protected,
    isDefault: branch.isDefault,
  };
  if (expiresAt !== undefined || change.protected) requireExpiry(scope, next);
  if (expiresAt && (await selectChildren(scope.tx, branch.id)).some(isLive)) {
    throw new CatnapError('unprocessable', 'a branch with children cannot expire');
  }
  // The list of allowed addresses may be one for protected branches only.
  if (next.protected !== branch.protected) await notifyAccessChanged(scope.tx, address.projectId);
  return updateBranch(scope.tx, branch.id, {
    ...(name === undefined ? {} : { name }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    protected: next.protected,
  });
}

export async function setDefaultBranch(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: BranchId,
): Promise<Branch> {
  await requireProjectLocked(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, id);
  if (branch.isDefault) return branch;
  if (branch.expiresAt !== null) throw new CatnapError('unprocessable', 'a branch that expires cannot be the default');
  const current = await selectDefaultBranch(scope.tx, projectId);
  if (current !== undefined) await updateBranch(scope.tx, current.id, { isDefault: false });
  return updateBranch(scope.tx, id, { isDefault: true });
}

export async function deleteBranch(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: BranchId,
  isFinal = false,
): Promise<BranchDeletion> {
  await requireProjectLocked(scope, caller, projectId);
  return queueBranchDeletion(scope, await requireBranch(scope, projectId, id), 'user', isFinal);
}

/** Also for branches that expire. A branch that has no data yet cannot be recovered. The caller holds the project. */
export async function queueBranchDeletion(
  scope: CommandScope,
  branch: Branch,
  deletionMethod: DeletionMethod,
  isFinal = false,
): Promise<BranchDeletion> {
  requireNotResetting(branch);
  await requireDeletable(scope, branch);
  const { id, projectId } = branch;
  const times = isFinal || branch.currentState !== 'ready' ? null : deletionTimes(scope);
  if (times === null) {
    await requireNoRecoverableChildren(scope, id);
    return removeBranchForGood(scope, branch);
  }
  const endpoints = await selectEndpoints(scope.tx, projectId, id);
  await cancelStarts(scope.tx, projectId, id);
  const operations = await queueStops(scope, endpoints);
  operations.push(await enqueue(scope, 'hide_branch', { projectId, branchId: id, shared: [branchKey(id)] }));
  for (const endpoint of endpoints) await updateEndpoint(scope.tx, endpoint.id, times);
  await detachWithBranch(scope.tx, id);
  await endStorage(scope.tx, { projectId, branchId: id }, times.deletingAt);
  const pendingState = 'storage_deleted';
  return { branch: await updateBranch(scope.tx, id, { ...times, deletionMethod, pendingState }), operations };
}

/** A branch is removed after its children: where their data came from must be known when they are recovered. */
export async function requireNoRecoverableChildren(scope: CommandScope, id: BranchId): Promise<void> {
  const children = (await selectChildren(scope.tx, id)).filter((child) => child.recoverableUntil !== null);
  if (children.length === 0) return;
  const message = 'deleted children of the branch can still be recovered: purge them first';
  throw new CatnapError('unprocessable', withDetails(message, { children: namesOf(children) }));
}

const isLive = (child: ChildBranch) => child.deletingAt === null;

async function requireDeletable(scope: CommandScope, branch: Branch): Promise<void> {
  const refuse = (reason: string) => new CatnapError('unprocessable', `cannot delete ${reason}`);
  if (branch.protected) throw refuse('protected branch');
  if (branch.isDefault) throw refuse('the default branch');
  if (branch.parentId === null && (await countRoots(scope.tx, branch.projectId)) < 2) throw refuse('the root branch');
  const children = (await selectChildren(scope.tx, branch.id)).filter(isLive);
  if (children.length > 0) {
    const details = { children: namesOf(children) };
    throw new CatnapError('unprocessable', withDetails('cannot delete a branch that has children', details));
  }
}

export const namesOf = (branches: readonly Pick<Branch, 'id' | 'name'>[]) =>
  branches.map(({ name, id }) => `${name} (${id})`).join(', ');

/** For changes that would mean one thing for the current data and another for the data that will replace it. */
export function requireNotResetting(branch: Branch): void {
  if (branch.currentState !== 'resetting') return;
  const message = 'the branch is being restored; try again when its operations have finished';
  throw new CatnapError('locked', withDetails(message, { branch_id: branch.id }), { retryAfterSeconds: 2 });
}

export async function requireFreeBranchName(
  scope: CommandScope,
  projectId: ProjectId,
  name: string,
  field = 'body.branch.name',
): Promise<void> {
  if (name.trim() === '') throw invalid(`invalid request: ${field} must not be blank`);
  if (await isBranchNameTaken(scope.tx, projectId, name))
    throw new CatnapError('branch_exists', withDetails('branch already exists', { branch_name: name }));
}

export function requireExpiry(
  scope: Scope,
  branch: {
    readonly expiresAt?: Date | null | undefined;
    readonly protected?: boolean | undefined;
    readonly isDefault: boolean;
  },
): void {
  if (!branch.expiresAt) return;
  if (branch.protected || branch.isDefault) {
    throw new CatnapError(
      'unprocessable',
      'a default or protected branch cannot expire: branch.expires_at must be left out',
    );
  }
  const aheadMs = branch.expiresAt.getTime() - scope.clock.now().getTime();
  if (aheadMs <= 0 || aheadMs > expiryMaxMs) {
    throw invalid('invalid request: body.branch.expires_at must be in the future and at most 30 days ahead');
  }
}
