/** Deleted projects and branches: listed, brought back, or removed for good before their time. */
import { selectOrganization } from '../db/accounts.ts';
import { attachWithBranch } from '../db/auth-integrations.ts';
import { isBranchNameTaken, selectBranches, selectBranchInAnyState, updateBranch } from '../db/branches.ts';
import { type DeletedThing, readUsersAnew, recoverEndpoints, selectDeletedThings } from '../db/deleted.ts';
import { selectEndpoints } from '../db/endpoints.ts';
import { markProject, type ProjectRow } from '../db/projects.ts';
import { beginStorage } from '../db/storage.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { type Caller, organizationsOf, requireAnyProjectLocked, requireProjectLocked } from './access.ts';
import { type Branch, namesOf, requireNoRecoverableChildren } from './branch.ts';
import { requireRoomForBranch } from './branch-create.ts';
import type { CommandScope, Scope } from './context.ts';
import { type BranchDeletion, removeBranchForGood, removeProjectForGood } from './deletion.ts';
import type { Endpoint } from './endpoint.ts';
import { withStored } from './project.ts';
import { requireRoomForProject } from './project-create.ts';

export type { DeletedThing };

export async function listDeleted(scope: Scope, caller: Caller): Promise<DeletedThing[]> {
  const organizations = await organizationsOf(scope, caller);
  return selectDeletedThings(scope.sql, {
    organizationIds: organizations.map(({ id }) => id),
    projectId: caller.projectId,
    now: scope.clock.now(),
  });
}

/** With everything that it had. Its computes sleep, or are about to. */
export async function recoverProject(
  scope: CommandScope,
  caller: Caller,
  id: ProjectId,
): Promise<{ readonly project: ProjectRow; readonly branches: readonly Branch[] }> {
  const { organizationId } = await requireDeletedProject(scope, caller, id);
  const organization = await selectOrganization(scope.tx, organizationId);
  if (organization === undefined) throw notFound('project');
  await requireRoomForProject(scope, organization);
  await beginStorage(scope.tx, { projectId: id }, scope.clock.now());
  await readUsersAnew(scope.tx, id);
  const project = await markProject(scope.tx, id, { deletingAt: null, recoverableUntil: null });
  const all = { search: null, sortBy: 'created_at', descending: false, after: null, limit: null } as const;
  return { project: await withStored(scope, project), branches: await selectBranches(scope.tx, id, all) };
}

export async function purgeProject(scope: CommandScope, caller: Caller, id: ProjectId): Promise<ProjectRow> {
  return withStored(scope, await removeProjectForGood(scope, await requireDeletedProject(scope, caller, id)));
}

/** Held for the rest of the transaction. */
async function requireDeletedProject(scope: CommandScope, caller: Caller, id: ProjectId): Promise<ProjectRow> {
  const project = await requireAnyProjectLocked(scope, caller, id, 'manage');
  requireDeleted(scope, project, 'project');
  return project;
}

/** With its computes, their ids and their hosts. It does not expire any more. */
export async function recoverBranch(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: BranchId,
): Promise<{ readonly branch: Branch; readonly endpoints: readonly Endpoint[] }> {
  const project = await requireProjectLocked(scope, caller, projectId);
  const deleted = await requireDeletedBranch(scope, projectId, id);
  await requireParent(scope, deleted);
  if (await isBranchNameTaken(scope.tx, projectId, deleted.name)) {
    const message = 'another branch has the name of the deleted one: rename that branch, then recover this one';
    throw new CatnapError('branch_exists', withDetails(message, { branch_name: deleted.name }));
  }
  await requireRoomForBranch(scope, project);
  await recoverEndpoints(scope.tx, id);
  await attachWithBranch(scope.tx, id);
  await beginStorage(scope.tx, { projectId, branchId: id }, scope.clock.now());
  const branch = await updateBranch(scope.tx, id, {
    deletingAt: null,
    recoverableUntil: null,
    deletionMethod: null,
    pendingState: null,
    expiresAt: null,
  });
  return { branch, endpoints: await selectEndpoints(scope.tx, projectId, id) };
}

/** Its parent may have been deleted after it, and must be there first. */
async function requireParent(scope: CommandScope, branch: Branch): Promise<void> {
  const parent = branch.parentId === null ? undefined : await selectBranchInAnyState(scope.tx, branch.parentId);
  const refuse = (message: string) =>
    new CatnapError('unprocessable', withDetails(message, { parent: parent === undefined ? '' : namesOf([parent]) }));
  if (parent?.recoverableUntil != null) throw refuse('the parent of the branch is deleted too: recover it first');
  if (parent?.deletingAt != null) throw refuse('the parent of the branch is being removed');
  if (parent?.expiresAt != null) throw refuse('the parent of the branch expires by now: clear its expires_at first');
}

export async function purgeBranch(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: BranchId,
): Promise<BranchDeletion> {
  await requireProjectLocked(scope, caller, projectId);
  const branch = await requireDeletedBranch(scope, projectId, id);
  await requireNoRecoverableChildren(scope, id);
  return removeBranchForGood(scope, branch);
}

async function requireDeletedBranch(scope: CommandScope, projectId: ProjectId, id: BranchId): Promise<Branch> {
  const branch = await selectBranchInAnyState(scope.tx, id);
  if (branch?.projectId !== projectId) throw notFound('branch');
  requireDeleted(scope, branch, 'branch');
  return branch;
}

/** What is past its time, or on its way out, does not exist any more. */
function requireDeleted(
  scope: Scope,
  row: { readonly deletingAt: Date | null; readonly recoverableUntil: Date | null },
  what: 'project' | 'branch',
): void {
  if (row.deletingAt === null) throw new CatnapError('unprocessable', `the ${what} is not deleted`);
  if (row.recoverableUntil === null || row.recoverableUntil <= scope.clock.now()) throw notFound(what);
}
