/** Creates a branch: its rows, with the roles and databases of its parent, and the operation that copies the data. */
import { countBranches, insertBranch, selectDefaultBranch } from '../db/branches.ts';
import { copyDatabases, type DatabaseRow } from '../db/databases.ts';
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import type { ProjectRow } from '../db/projects.ts';
import { copyRoles, type RoleRow } from '../db/roles.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import { type BranchId, newBranchId, type ProjectId } from '../lib/ids.ts';
import { type Caller, planOfProject, requireBranch, requireProjectLocked } from './access.ts';
import { type Branch, requireExpiry, requireFreeBranchName, requireNotResetting } from './branch.ts';
import { type ConnectionDetails, connectionDetails } from './connection-uri.ts';
import type { CommandScope, Scope } from './context.ts';
import { type Endpoint, type EndpointOptions, insertNewEndpoint } from './endpoint.ts';
import { branchKey, endpointKey, enqueue, type Operation, requireRoomInQueue } from './operation.ts';
import { openPassword } from './role.ts';

export interface BranchInput {
  readonly parentId?: BranchId | undefined;
  readonly name?: string | undefined;
  readonly protected?: boolean | undefined;
  readonly initSource?: string | undefined;
  readonly expiresAt?: Date | undefined;
  readonly parentLsn?: string | undefined;
  readonly parentTimestamp?: string | undefined;
  readonly archived?: boolean | undefined;
  readonly annotation: Readonly<Record<string, string>>;
  readonly endpoints: readonly EndpointOptions[];
}

export interface CreatedBranch {
  readonly branch: Branch;
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
  readonly roles: readonly RoleRow[];
  readonly databases: readonly DatabaseRow[];
  /** Absent when several roles or databases leave the choice open, or no compute was asked for. */
  readonly connection: ConnectionDetails | null;
}

export async function createBranch(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  input: BranchInput,
): Promise<CreatedBranch> {
  const project = await requireProjectLocked(scope, caller, projectId);
  await requireRoomInQueue(scope, projectId);
  requireSupported(input);
  const parent = await findParent(scope, projectId, input.parentId);
  const id = newBranchId();
  const name = input.name ?? id;
  await requireFreeBranchName(scope, projectId, name);
  await requireRoomForBranch(scope, project);
  requireExpiry(scope, { ...input, isDefault: false });
  const branch = await insertBranch(scope.tx, {
    id,
    projectId,
    name,
    parentId: parent.id,
    parentTimestamp: scope.clock.now(),
    isDefault: false,
    protected: input.protected ?? false,
    initSource: input.initSource ?? 'parent-data',
    expiresAt: input.expiresAt ?? null,
    annotation: input.annotation,
    createdBy: caller.userId,
  });
  const roles = await copyRoles(scope.tx, parent.id, id);
  const databases = await copyDatabases(scope.tx, parent.id, id);
  const operations: Operation[] = [await queueCopy(scope, branch, parent)];
  const endpoints: Endpoint[] = [];
  for (const options of input.endpoints) {
    const made = await insertNewEndpoint(scope, project, branch, options);
    endpoints.push(made.endpoint);
    operations.push(...made.operations);
  }
  const result = {
    branch,
    endpoints,
    operations,
    roles: roles.filter(isLive),
    databases: databases.filter(isLive),
  };
  return { ...result, connection: connectionOf(scope, project, result) };
}

/** Shared keys: the parent's compute keeps serving, but cannot start, stop or be deleted until the copy is made. */
async function queueCopy(scope: CommandScope, branch: Branch, parent: Branch): Promise<Operation> {
  const compute = await selectReadWriteEndpoint(scope.tx, parent.id);
  return enqueue(scope, 'create_branch', {
    projectId: branch.projectId,
    branchId: branch.id,
    exclusive: [branchKey(branch.id)],
    shared: [branchKey(parent.id), ...(compute === undefined ? [] : [endpointKey(compute.id)])],
  });
}

function requireSupported(input: BranchInput): void {
  if (input.parentLsn !== undefined || input.parentTimestamp !== undefined) {
    throw new CatnapError(
      'unprocessable',
      'a branch from a point in the past comes with a later version: leave branch.parent_lsn and branch.parent_timestamp out to branch from the head of the parent',
    );
  }
  if (input.archived === true)
    throw new CatnapError('unprocessable', 'archived branches do not exist here: leave branch.archived out');
}

async function findParent(scope: CommandScope, projectId: ProjectId, id: BranchId | undefined): Promise<Branch> {
  const parent = id ? await requireBranch(scope, projectId, id) : await selectDefaultBranch(scope.tx, projectId);
  if (parent === undefined) throw notFound('branch');
  requireNotResetting(parent);
  if (parent.expiresAt !== null) throw new CatnapError('unprocessable', 'a branch that expires cannot have children');
  return parent;
}

export async function requireRoomForBranch(scope: CommandScope, project: ProjectRow): Promise<void> {
  const { branchesPerProjectMax: max } = await planOfProject(scope, project);
  if (max !== null && (await countBranches(scope.tx, project.id, null)) >= max) {
    throw new CatnapError('branches_limit', withDetails('branches limit exceeded', { limit: max }));
  }
}

function connectionOf(
  scope: Scope,
  project: ProjectRow,
  made: {
    readonly endpoints: readonly Endpoint[];
    readonly roles: readonly RoleRow[];
    readonly databases: readonly DatabaseRow[];
  },
): ConnectionDetails | null {
  const [endpoint] = made.endpoints;
  const [role, ...otherRoles] = made.roles;
  const [database, ...otherDatabases] = made.databases;
  if (!endpoint || !role || !database || otherRoles.length > 0 || otherDatabases.length > 0) return null;
  const password = openPassword(scope, project.id, role);
  if (password === null) return null;
  return connectionDetails(scope.config, {
    endpointId: endpoint.id,
    databaseName: database.name,
    roleName: role.name,
    password,
    pooled: false,
  });
}

const isLive = (row: { readonly droppedAt: Date | null }) => row.droppedAt === null;
