/** Creates a branch: its rows, with the roles and databases of its parent, and the operation that copies the data. */
import { countBranches, insertBranch, selectDefaultBranch } from '../db/branches.ts';
import { copyDatabases, type DatabaseRow, deletePendingDatabases, selectDatabases } from '../db/databases.ts';
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import type { ProjectRow } from '../db/projects.ts';
import { copyRoles, deletePendingRoles, type RoleRow, selectRoles } from '../db/roles.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import { type BranchId, newBranchId, type ProjectId } from '../lib/ids.ts';
import { type Caller, planOfProject, requireBranch, requireProjectLocked } from './access.ts';
import { type Branch, requireExpiry, requireFreeBranchName, requireNotResetting } from './branch.ts';
import { type ConnectionDetails, connectionDetails } from './connection-uri.ts';
import type { CommandScope, Scope } from './context.ts';
import { type Endpoint, type EndpointOptions, insertNewEndpoint } from './endpoint.ts';
import { isMomentGiven, type ResolvedMoment, resolveMoment } from './moments.ts';
import { branchKey, endpointKey, enqueue, historyKey, type Operation, requireRoomInQueue } from './operation.ts';
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
  requireSupported(input);
  const id = newBranchId();
  const name = input.name ?? id;
  // Here and below: sent together, carried out in this order.
  const [, parent] = await Promise.all([
    requireRoomInQueue(scope, projectId),
    findParent(scope, projectId, input.parentId),
    requireFreeBranchName(scope, projectId, name),
    requireRoomForBranch(scope, project),
  ]);
  const past = await findPast(scope, parent, input);
  requireExpiry(scope, { ...input, isDefault: false });
  const [branch, catalog, compute] = await Promise.all([
    insertBranch(scope.tx, {
      id,
      projectId,
      name,
      parentId: parent.id,
      ...forkOf(scope, past),
      isDefault: false,
      protected: input.protected ?? false,
      initSource: input.initSource ?? 'parent-data',
      expiresAt: input.expiresAt ?? null,
      annotation: input.annotation,
      createdBy: caller.userId,
    }),
    copyCatalog(scope, parent.id, id, past),
    selectReadWriteEndpoint(scope.tx, parent.id),
  ]);
  const operations: Operation[] = [await queueCopy(scope, branch, { parent, compute, past })];
  const endpoints: Endpoint[] = [];
  for (const options of input.endpoints) {
    const made = await insertNewEndpoint(scope, project, branch, options);
    endpoints.push(made.endpoint);
    operations.push(...made.operations);
  }
  const result = { branch, endpoints, operations, ...catalog };
  return { ...result, connection: connectionOf(scope, project, result) };
}

/** Null for the head of the parent. */
async function findPast(scope: Scope, parent: Branch, input: BranchInput): Promise<ResolvedMoment | null> {
  const { parentLsn: lsn, parentTimestamp: timestamp } = input;
  if (!isMomentGiven({ lsn, timestamp })) return null;
  const fields = { lsn: 'body.branch.parent_lsn', timestamp: 'body.branch.parent_timestamp' };
  return resolveMoment(scope, parent, { lsn, timestamp }, fields);
}

/** The LSN is final when the data is there. */
function forkOf(scope: Scope, past: ResolvedMoment | null): Pick<Branch, 'parentTimestamp' | 'parentLsn'> {
  if (past === null) return { parentTimestamp: scope.clock.now(), parentLsn: null };
  const { moment } = past;
  if (moment.kind === 'lsn') return { parentTimestamp: null, parentLsn: moment.lsn };
  return { parentTimestamp: new Date(moment.at), parentLsn: null };
}

/** For a moment of the past these are a guess until the operation has read what was there. */
async function copyCatalog(scope: CommandScope, from: BranchId, to: BranchId, past: ResolvedMoment | null) {
  const { tx } = scope;
  const [, , , roles, databases] = await Promise.all([
    copyRoles(tx, from, to),
    copyDatabases(tx, from, to),
    past === null ? undefined : Promise.all([deletePendingDatabases(tx, to), deletePendingRoles(tx, to)]),
    selectRoles(tx, to),
    selectDatabases(tx, to),
  ]);
  return { roles, databases };
}

interface CopySource {
  readonly parent: Branch;
  /** The parent's, if it has one. */
  readonly compute: Endpoint | undefined;
  readonly past: ResolvedMoment | null;
}

/**
 * Shared keys: the parent's compute keeps serving, but cannot start, stop or be deleted until the copy is made. A copy
 * of the past needs the history alone.
 */
async function queueCopy(
  scope: CommandScope,
  branch: Branch,
  { parent, compute, past }: CopySource,
): Promise<Operation> {
  const of = { projectId: branch.projectId, branchId: branch.id, exclusive: [branchKey(branch.id)] };
  if (past !== null) {
    return enqueue(scope, 'create_branch', {
      ...of,
      shared: [historyKey(past.branchId)],
      state: { past: { ...past } },
    });
  }
  const shared = [branchKey(parent.id), ...(compute === undefined ? [] : [endpointKey(compute.id)])];
  return enqueue(scope, 'create_branch', { ...of, shared });
}

function requireSupported(input: BranchInput): void {
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
