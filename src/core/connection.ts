/** What the proxy and the connection-string route need: who may log in where, and a request to wake. */

import { selectDefaultBranch } from '../db/branches.ts';
import type { Sql } from '../db/client.ts';
import { selectDatabase } from '../db/databases.ts';
import {
  type EndpointRow,
  lockEndpoint,
  selectEndpointInAnyState,
  selectReadWriteEndpoint,
  touchEndpoint,
  updateLastActive,
} from '../db/endpoints.ts';
import { type LoginRow, selectLogin, updateSeenVerifier } from '../db/logins.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { lockProject } from '../db/projects.ts';
import { selectRole } from '../db/roles.ts';
import { hurryOperations, selectWake } from '../db/wakes.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress } from '../lib/model.ts';
import { type Caller, requireBranch, requireEndpoint, requireProject } from './access.ts';
import { connectionUri } from './connection-uri.ts';
import { type CommandScope, type Core, commandScope, type Scope } from './context.ts';
import { queueStart, queueStartOfSleeper, type Sleeper } from './endpoint.ts';
import { sleepsAt } from './idleness.ts';
import { wakePriority } from './operation.ts';
import { openPassword } from './role.ts';

/** Null when there is no such endpoint. */
export function findLogin(sql: Sql, endpointId: EndpointId, roleName: string): Promise<LoginRow | undefined> {
  return selectLogin(sql, endpointId, roleName);
}

/** Where a server answers, and how many sessions it takes from clients. */
export type OpenRoute = ComputeAddress & { readonly sessions?: number };

export async function findAddress(sql: Sql, endpointId: EndpointId): Promise<OpenRoute | null> {
  const endpoint = await selectEndpointInAnyState(sql, endpointId);
  return endpoint === undefined ? null : routeOf(endpoint);
}

export function routeOf({ address, server }: Pick<EndpointRow, 'address' | 'server'>): OpenRoute | null {
  if (address === null) return null;
  const settings = server?.settings ?? {};
  const sessions = Number(settings.max_connections) - Number(settings.superuser_reserved_connections ?? 0);
  return sessions > 0 ? { ...address, sessions } : address;
}

export const recordActivity = updateLastActive;
export const recordSeenVerifier = updateSeenVerifier;

export type WakeState =
  | { readonly kind: 'awake'; readonly address: OpenRoute }
  /** An operation will bring it up, or is about to fail; ask again when something changes. */
  | { readonly kind: 'waking' };

/**
 * Queues the one `start_compute` that is needed, if it is needed. Never queues a second one. `sleeper` is the endpoint
 * as it was last seen, asleep.
 */
export async function requestWake(core: Core, endpointId: EndpointId, sleeper?: Sleeper): Promise<WakeState> {
  // Whether it does sleep is looked at by the statement itself; mostly there is nothing more to ask.
  if (sleeper !== undefined && (await queueStartOfSleeper(core, sleeper))) return { kind: 'waking' };
  const seen = await selectEndpointInAnyState(core.database.sql, endpointId);
  if (seen === undefined) throw notFound('endpoint');
  const endpoint = mayFallAsleep(core, seen) ? await touchEndpoint(core.database.sql, endpointId) : seen;
  const open = routeOf(endpoint);
  if (open !== null) return { kind: 'awake', address: open };
  const seemsAsleep = endpoint.currentState === 'idle' && endpoint.pendingState === null;
  if (seemsAsleep && (await queueStartOfSleeper(core, endpoint))) return { kind: 'waking' };
  return core.database.transaction((tx) => wakeLocked(commandScope(core, tx), endpoint.projectId, endpointId));
}

/**
 * A compute whose time is about to be over may be put to sleep between this look and the client's login. Whoever does
 * that looks at its last use under the row's lock, so a use that is written there settles who was first.
 */
function mayFallAsleep({ clock }: Core, endpoint: EndpointRow): boolean {
  const at = sleepsAt(endpoint);
  return endpoint.address !== null && at !== null && at.getTime() - clock.now().getTime() < sleepsSoonMs;
}

/** More than a login takes. */
const sleepsSoonMs = 2_000;

async function wakeLocked(scope: CommandScope, projectId: ProjectId, endpointId: EndpointId): Promise<WakeState> {
  // The project first, as every command does: that order keeps the queue's order and avoids deadlocks.
  const [project, endpoint, last] = await Promise.all([
    lockProject(scope.tx, projectId),
    lockEndpoint(scope.tx, endpointId),
    selectUnfinishedForEndpoint(scope.tx, endpointId),
  ]);
  if (project === undefined || endpoint === undefined) throw notFound('endpoint');
  if (endpoint.disabled) throw new CatnapError('precondition_failed', 'endpoint is disabled');
  const open = routeOf(endpoint);
  if (open !== null) return { kind: 'awake', address: open };
  if (last?.job !== 'start_compute') await queueStart(scope, endpoint, wakePriority);
  // A suspend that it waits for, say, or a start that was asked for over the API.
  if (last !== undefined) await hurryOperations(scope.tx, endpointId, wakePriority);
  return { kind: 'waking' };
}

/** How a wake that was asked for stands now. */
export async function lookAtWake(sql: Sql, endpointId: EndpointId): Promise<WakeState> {
  const seen = await selectWake(sql, endpointId);
  if (seen === undefined) throw notFound('endpoint');
  const address = routeOf(seen);
  if (address !== null) return { kind: 'awake', address };
  if (seen.operationId === null) throw notFound('endpoint');
  if (seen.finishedAt === null) return { kind: 'waking' };
  // Finished without opening the route: it failed, or something else has put the compute back to sleep since.
  throw new CatnapError(
    'unavailable',
    withDetails('the compute could not be started', { operation_id: seen.operationId }),
    {
      cause: seen.error ?? seen.status,
    },
  );
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
