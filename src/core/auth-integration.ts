/**
 * The integration of a project with an auth provider: which projects may have one, on which database, for which role.
 * Creating one is an operation, because it calls the provider; the API asks the provider directly for what only the
 * provider knows.
 */
import { randomUUID } from 'node:crypto';
import {
  type AuthIntegrationRow,
  deleteAuthIntegration,
  insertAuthIntegration,
  insertLeftovers,
  insertSchemaDrop,
  selectAuthIntegration,
  selectDetachedAuthIntegration,
  selectLiveAuthIntegration,
  takeFirstKeys,
  updateAuthIntegration,
} from '../db/auth-integrations.ts';
import { type DatabaseRow, selectDatabase, selectDatabases } from '../db/databases.ts';
import { selectRole, selectRoles } from '../db/roles.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import type { BranchId, OperationId, ProjectId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import type { CommandScope, Scope } from './context.ts';
import { enqueue, requireRoomInQueue } from './operation.ts';
import { initialDatabase, initialOwner } from './project-create.ts';

export type AuthIntegration = AuthIntegrationRow;

export const usersSchema = 'neon_auth';
export const usersTable = 'users_sync';

export interface IntegrationAddress {
  readonly projectId: ProjectId;
  /** Set by routes that name a branch: the integration must be on that branch. */
  readonly branchId?: BranchId;
}

export interface IntegrationInput {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly databaseName: string | null;
  readonly roleName: string | null;
  /** URL of the provider; null for the embedded one. */
  readonly providerUrl: string | null;
}

export interface StartedIntegration {
  readonly integrationId: string;
  readonly operationId: OperationId;
}

export interface FirstKeys {
  readonly publishableClientKey: string;
  readonly secretServerKey: string;
}

const authKey = (id: ProjectId) => `auth:${id}`;
/** What the sealed secrets of an integration are bound to. */
export const adminKeySealContext = (providerProjectId: string) => `auth admin key:${providerProjectId}`;
export const webhookSecretSealContext = (integrationId: string) => `auth webhooks:${integrationId}`;
export const firstKeysSealContext = (integrationId: string) => `auth first keys:${integrationId}`;

/** A repeated request joins one that is still under way, or whose keys have not been handed out yet. */
export async function beginIntegration(
  scope: CommandScope,
  caller: Caller,
  input: IntegrationInput,
): Promise<StartedIntegration> {
  await requireProjectLocked(scope, caller, input.projectId);
  const wanted = await requireWanted(scope, input);
  const live = await selectLiveAuthIntegration(scope.tx, input.projectId);
  if (live !== undefined) return joinOrRefuse(live, wanted);
  await requireRoomInQueue(scope, input.projectId);
  const kept = await selectDetachedAuthIntegration(scope.tx, input.projectId, input.providerUrl);
  const row = kept
    ? await updateAuthIntegration(scope.tx, kept.id, { ...wanted, ...anew, pollAt: scope.clock.now() })
    : await insertAuthIntegration(scope.tx, {
        id: randomUUID(),
        projectId: input.projectId,
        authProvider: 'stack',
        ...wanted,
        providerUrl: input.providerUrl,
      });
  if (row === undefined) throw notFound('auth integration');
  const operation = await enqueue(scope, 'create_auth_integration', {
    projectId: input.projectId,
    branchId: wanted.branchId,
    exclusive: [authKey(input.projectId)],
    state: { integration: row.id, kept: kept !== undefined },
  });
  await updateAuthIntegration(scope.tx, row.id, { operationId: operation.id });
  return { integrationId: row.id, operationId: operation.id };
}

const anew = {
  status: 'creating',
  detachedWithBranch: false,
  firstKeys: null,
  syncedSeq: 0,
  syncFailures: 0,
  syncError: null,
  syncRetryAt: null,
  followUntil: null,
  followFailures: 0,
  followError: null,
} as const;

interface Wanted {
  readonly branchId: BranchId;
  readonly databaseId: number;
  readonly databaseName: string;
  readonly roleName: string;
}

async function requireWanted(scope: CommandScope, input: IntegrationInput): Promise<Wanted> {
  const branch = await requireBranch(scope, input.projectId, input.branchId);
  if (!branch.isDefault) {
    const message = 'an auth integration is made on the default branch of its project';
    throw new CatnapError('unprocessable', withDetails(message, { branch_id: branch.id }));
  }
  const database = await requireDatabase(scope, branch.id, input.databaseName);
  const roleName = await requireRoleName(scope, branch.id, input.roleName);
  return { branchId: branch.id, databaseId: database.id, databaseName: database.name, roleName };
}

/** When none is named: `neondb` if the branch has it, else the branch's first one, whatever it is called. */
async function requireDatabase(scope: Scope, branchId: BranchId, name: string | null): Promise<DatabaseRow> {
  const database =
    name === null
      ? namedOrFirst(await selectDatabases(scope.sql, branchId), initialDatabase)
      : await selectDatabase(scope.sql, branchId, name);
  if (database !== undefined) return database;
  if (name === null) throw new CatnapError('unprocessable', 'the branch has no database to keep users in');
  throw new CatnapError('not_found', withDetails('database not found', { database_name: name }));
}

async function requireRoleName(scope: Scope, branchId: BranchId, name: string | null): Promise<string> {
  const role =
    name === null
      ? namedOrFirst(await selectRoles(scope.sql, branchId), initialOwner(initialDatabase))
      : await selectRole(scope.sql, branchId, name);
  if (role !== undefined) return role.name;
  if (name === null) throw new CatnapError('unprocessable', 'the branch has no role to read users with');
  throw new CatnapError('not_found', withDetails('role not found', { role_name: name }));
}

const namedOrFirst = <T extends { readonly name: string }>(rows: readonly T[], name: string): T | undefined =>
  rows.find((row) => row.name === name) ?? rows[0];

function joinOrRefuse(live: AuthIntegration, wanted: Wanted): StartedIntegration {
  const isSame =
    live.branchId === wanted.branchId && live.databaseName === wanted.databaseName && live.roleName === wanted.roleName;
  const isOpen = live.status === 'creating' || live.firstKeys !== null;
  if (isSame && isOpen && live.operationId !== null) {
    return { integrationId: live.id, operationId: live.operationId };
  }
  throw exists(live);
}

function exists({ projectId, branchId }: AuthIntegration): CatnapError {
  const details = { project_id: projectId, branch_id: branchId ?? '' };
  return new CatnapError('conflict', withDetails('the project already has an auth integration', details));
}

/** Hands the keys out once; to a second request the integration already exists. */
export async function finishIntegration(
  scope: CommandScope,
  integrationId: string,
): Promise<{ readonly integration: AuthIntegration; readonly keys: FirstKeys }> {
  const integration = await selectAuthIntegration(scope.tx, integrationId);
  if (integration?.status !== 'active') throw notFound('auth integration');
  const sealed = await takeFirstKeys(scope.tx, integrationId);
  if (sealed === null) throw exists(integration);
  return { integration, keys: JSON.parse(scope.box.open(sealed, firstKeysSealContext(integrationId))) as FirstKeys };
}

export async function listIntegrations(scope: Scope, caller: Caller, projectId: ProjectId): Promise<AuthIntegration[]> {
  await requireProject(scope, caller, projectId);
  const live = await selectLiveAuthIntegration(scope.sql, projectId);
  return live?.status === 'active' ? [live] : [];
}

export async function requireIntegration(
  scope: Scope,
  caller: Caller,
  address: IntegrationAddress,
): Promise<AuthIntegration> {
  await requireProject(scope, caller, address.projectId);
  return requireActive(scope, address);
}

async function requireActive(scope: Scope, { projectId, branchId }: IntegrationAddress): Promise<AuthIntegration> {
  if (branchId !== undefined) await requireBranch(scope, projectId, branchId);
  const live = await selectLiveAuthIntegration(scope.sql, projectId);
  const isThere = live?.status === 'active' && (branchId === undefined || live.branchId === branchId);
  if (!isThere) throw notFound('auth integration');
  return live;
}

/** The project that an integration has at its provider, and the key that administers it. */
export function providerAccess(scope: Scope, { providerProjectId, adminKey }: AuthIntegration) {
  if (providerProjectId === null || adminKey === null) throw new Error('BUG: an active integration has no project');
  return { providerProjectId, adminKey: scope.box.open(adminKey, adminKeySealContext(providerProjectId)) };
}

/**
 * Deleting the data drops the schema, and the project at the provider unless it has an owner there. Otherwise both
 * stay, and a later integration takes them over.
 */
export async function removeIntegration(
  scope: CommandScope,
  caller: Caller,
  address: IntegrationAddress,
  deleteData: boolean,
): Promise<void> {
  await requireProjectLocked(scope, caller, address.projectId);
  const live = await selectLiveAuthIntegration(scope.tx, address.projectId);
  if (live?.status === 'creating') {
    throw new CatnapError('locked', 'the auth integration is still being made', { retryAfterSeconds: 2 });
  }
  const { id, projectId, branchId, databaseName, ownedBy } = await requireActive(scope, address);
  if (!deleteData && ownedBy === 'neon') {
    await updateAuthIntegration(scope.tx, id, { status: 'detached', firstKeys: null, transferStatus: null });
    return;
  }
  if (deleteData && branchId !== null) await insertSchemaDrop(scope.tx, branchId, databaseName);
  await insertLeftovers(scope.tx, { projectId, id });
  await deleteAuthIntegration(scope.tx, id);
}

export async function recordTransferStarted(scope: CommandScope, id: string): Promise<void> {
  await updateAuthIntegration(scope.tx, id, {
    transferStatus: 'initiated',
    transferStartedAt: scope.clock.now(),
  });
}

export async function recordTransferred(scope: { readonly sql: Scope['sql'] }, id: string): Promise<void> {
  await updateAuthIntegration(scope.sql, id, { ownedBy: 'user', transferStatus: 'finished' });
}
