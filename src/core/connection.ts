/** Where an endpoint's server answers, and the connection string with which clients reach the endpoint. */

import { selectDefaultBranch } from '../db/branches.ts';
import type { Sql } from '../db/client.ts';
import { selectDatabase } from '../db/databases.ts';
import { type EndpointRow, selectEndpointInAnyState, selectReadWriteEndpoint } from '../db/endpoints.ts';
import { selectRole } from '../db/roles.ts';
import { CatnapError, invalid, notFound } from '../lib/errors.ts';
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress } from '../lib/model.ts';
import { type Caller, requireBranch, requireEndpoint, requireProject } from './access.ts';
import { connectionUri } from './connection-uri.ts';
import type { Scope } from './context.ts';
import { openPassword } from './role.ts';

/** Where a server answers, how many sessions it takes from clients, and which start of its compute it is. */
export type OpenRoute = ComputeAddress & { readonly sessions?: number; readonly generation?: number };

export async function findAddress(sql: Sql, endpointId: EndpointId): Promise<OpenRoute | null> {
  const endpoint = await selectEndpointInAnyState(sql, endpointId);
  return endpoint === undefined ? null : routeOf(endpoint);
}

export function routeOf({
  address,
  server,
  generation,
}: Pick<EndpointRow, 'address' | 'server' | 'generation'>): OpenRoute | null {
  return address === null ? null : { ...routeTo(address, server?.settings ?? {}), generation };
}

/** `settings` are those that the server runs with. */
export function routeTo(address: ComputeAddress, settings: Readonly<Record<string, string>>): OpenRoute {
  const sessions = Number(settings.max_connections) - Number(settings.superuser_reserved_connections ?? 0);
  return sessions > 0 ? { ...address, sessions } : address;
}

export interface ConnectionUriInput {
  readonly branchId: BranchId | null;
  readonly endpointId: EndpointId | null;
  readonly databaseName: string;
  readonly roleName: string;
  readonly pooled: boolean;
}

export async function getConnectionUri(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  input: ConnectionUriInput,
): Promise<string> {
  const project = await requireProject(scope, caller, projectId);
  const given = input.endpointId === null ? undefined : await requireEndpoint(scope, projectId, input.endpointId);
  const branch =
    input.branchId !== null
      ? await requireBranch(scope, projectId, input.branchId)
      : given !== undefined
        ? await requireBranch(scope, projectId, given.branchId)
        : await selectDefaultBranch(scope.sql, projectId);
  if (branch === undefined) throw notFound('branch');
  if (given !== undefined && given.branchId !== branch.id) {
    throw invalid('invalid request: endpoint_id must be an endpoint of the branch');
  }
  const endpoint = given ?? (await selectReadWriteEndpoint(scope.sql, branch.id));
  if (endpoint === undefined) throw notFound('endpoint');
  if (input.pooled && !endpoint.poolerEnabled) {
    throw new CatnapError('precondition_failed', 'connection pooling is disabled for this endpoint: pooler_enabled');
  }
  const database = await selectDatabase(scope.sql, branch.id, input.databaseName);
  if (database === undefined) throw notFound('database');
  const role = await selectRole(scope.sql, branch.id, input.roleName);
  if (role === undefined) throw notFound('role');
  const password = openPassword(scope, project.id, role);
  if (password === null) throw new CatnapError('precondition_failed', 'the password of this role is not stored');
  return connectionUri(scope.config, {
    endpointId: endpoint.id,
    databaseName: database.name,
    roleName: role.name,
    password,
    pooled: input.pooled,
  });
}
