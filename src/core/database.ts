/** Databases of a branch. */
import {
  type DatabaseRow,
  deleteDatabaseRow,
  insertDatabase,
  selectDatabase,
  selectDatabases,
  updateDatabase,
} from '../db/databases.ts';
import { selectRole } from '../db/roles.ts';
import { askedFor } from '../db/taken-back.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import { queueCatalogChange } from './catalog.ts';
import type { CommandScope, Scope } from './context.ts';
import type { Operation } from './operation.ts';

export type BranchDatabase = DatabaseRow;

const nameBytesMax = 63;
const databasesPerBranchMax = 500;
const reservedNames = new Set(['postgres', 'template0', 'template1', 'catnap']);

export interface DatabaseChange {
  readonly database: BranchDatabase;
  readonly operations: readonly Operation[];
}

export interface DatabaseAddress {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly name: string;
}

export async function createDatabase(
  scope: CommandScope,
  caller: Caller,
  input: DatabaseAddress & { readonly ownerName: string },
): Promise<DatabaseChange> {
  await requireProjectLocked(scope, caller, input.projectId);
  const branch = await requireBranch(scope, input.projectId, input.branchId);
  requireDatabaseName(input.name, 'body.database.name');
  await requireFreeName(scope, branch.id, input.name);
  await requireOwner(scope, branch.id, input.ownerName);
  const database = await insertDatabase(scope.tx, {
    branchId: branch.id,
    name: input.name,
    ownerName: input.ownerName,
  });
  return { database, operations: await queueCatalogChange(scope, branch, askedFor('database', database)) };
}

export async function listDatabases(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  branchId: BranchId,
): Promise<BranchDatabase[]> {
  await requireProject(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  return selectDatabases(scope.sql, branch.id);
}

export async function getDatabase(scope: Scope, caller: Caller, address: DatabaseAddress): Promise<BranchDatabase> {
  await requireProject(scope, caller, address.projectId);
  return requireDatabase(scope, address);
}

export async function updateDatabaseOf(
  scope: CommandScope,
  caller: Caller,
  address: DatabaseAddress,
  change: { readonly name?: string | undefined; readonly ownerName?: string | undefined },
): Promise<DatabaseChange> {
  await requireProjectLocked(scope, caller, address.projectId);
  const branch = await requireBranch(scope, address.projectId, address.branchId);
  const database = await requireDatabase(scope, address);
  const name = change.name ?? database.name;
  const ownerName = change.ownerName ?? database.ownerName;
  if (name === database.name && ownerName === database.ownerName) return { database, operations: [] };
  if (name !== database.name) {
    requireDatabaseName(name, 'body.database.name');
    await requireFreeName(scope, branch.id, name, database.id);
  }
  if (ownerName !== database.ownerName) await requireOwner(scope, branch.id, ownerName);
  const changed = await updateDatabase(scope.tx, database.id, { name, ownerName, pending: true });
  return { database: changed, operations: await queueCatalogChange(scope, branch, askedFor('database', changed)) };
}

export async function deleteDatabase(
  scope: CommandScope,
  caller: Caller,
  address: DatabaseAddress,
): Promise<DatabaseChange> {
  await requireProjectLocked(scope, caller, address.projectId);
  const branch = await requireBranch(scope, address.projectId, address.branchId);
  const database = await requireDatabase(scope, address);
  if (database.appliedName === null) {
    await deleteDatabaseRow(scope.tx, database.id);
    return { database, operations: [] };
  }
  const dropped = await updateDatabase(scope.tx, database.id, {
    droppedAt: scope.clock.now(),
    pending: true,
  });
  return { database: dropped, operations: await queueCatalogChange(scope, branch, askedFor('database', dropped)) };
}

export function requireDatabaseName(name: string, field: string): void {
  const bytes = Buffer.byteLength(name);
  if (bytes === 0 || bytes > nameBytesMax)
    throw invalid(`invalid request: ${field} must be 1 to ${nameBytesMax} bytes`);
  if (reservedNames.has(name))
    throw invalid(`invalid request: ${field} must not be one of ${[...reservedNames].join(', ')}`);
}

async function requireDatabase(scope: Scope, address: DatabaseAddress): Promise<BranchDatabase> {
  const branch = await requireBranch(scope, address.projectId, address.branchId);
  const database = await selectDatabase(scope.sql, branch.id, address.name);
  if (database === undefined) throw notFound('database');
  return database;
}

/** The old name of a renamed database is not free either, until the server has carried out the rename. */
async function requireFreeName(
  scope: CommandScope,
  branchId: BranchId,
  name: string,
  exceptId?: number,
): Promise<void> {
  const databases = await selectDatabases(scope.tx, branchId);
  const others = databases.filter((database) => database.id !== exceptId);
  if (others.some((database) => database.name === name || database.appliedName === name)) {
    throw new CatnapError('conflict', withDetails('database already exists', { database_name: name }));
  }
  if (databases.length >= databasesPerBranchMax) {
    throw new CatnapError('unprocessable', `a branch has at most ${databasesPerBranchMax} databases`);
  }
}

async function requireOwner(scope: CommandScope, branchId: BranchId, name: string): Promise<void> {
  if ((await selectRole(scope.tx, branchId, name)) === undefined) {
    throw new CatnapError('not_found', withDetails('database owner not found', { role_name: name }));
  }
}
