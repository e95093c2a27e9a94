/** Finds the server from which the schema of a branch's database can be read; `schema-reader.ts` reads it. */
import { selectDatabase } from '../db/databases.ts';
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import { CatnapError, invalid, notFound } from '../lib/errors.ts';
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProject } from './access.ts';
import type { Scope } from './context.ts';
import { adminSecretSealContext } from './project.ts';

export interface DumpedDatabase {
  readonly pgVersion: number;
  readonly database: string;
  /** Password of Catnap's own login on that server. */
  readonly adminSecret: string;
}

export interface SchemaSource extends DumpedDatabase {
  readonly branchName: string;
  readonly endpointId: EndpointId;
}

export interface Address {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
}

export async function findSchemaSource(
  scope: Scope,
  caller: Caller,
  { projectId, branchId }: Address,
  databaseName: string,
): Promise<SchemaSource> {
  const project = await requireProject(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  const database = await selectDatabase(scope.sql, branch.id, databaseName);
  if (database === undefined) throw notFound('database');
  const endpoint = await selectReadWriteEndpoint(scope.sql, branch.id);
  if (endpoint === undefined) {
    const reason = `the schema is read from a read_write endpoint: the branch ${branch.name} has none, create it first`;
    throw new CatnapError('unprocessable', reason);
  }
  if (endpoint.disabled) throw new CatnapError('precondition_failed', 'endpoint is disabled');
  return {
    branchName: branch.name,
    endpointId: endpoint.id,
    pgVersion: project.pgVersion,
    database: database.name,
    adminSecret: scope.box.open(project.adminSecret, adminSecretSealContext(project.id)),
  };
}

/** The branch to compare with: the named one, else the parent. */
export async function baseOf(
  scope: Scope,
  caller: Caller,
  { projectId, branchId }: Address,
  base: BranchId | null,
): Promise<Address> {
  await requireProject(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  const baseId = base ?? branch.parentId;
  if (baseId === null) {
    throw invalid('invalid request: query.base_branch_id is required for a branch that has no parent');
  }
  return { projectId, branchId: baseId };
}
