/** Compute endpoints: created, started, suspended and deleted by writing intent and queueing operations. */

import type { BranchRow } from '../db/branches.ts';
import {
  type EndpointRow,
  type EndpointSettings,
  type EndpointType,
  insertEndpoint,
  lockEndpoint,
  type NewEndpoint,
  selectEndpoint,
  selectEndpoints,
  selectReadWriteEndpoint,
  updateEndpoint,
} from '../db/endpoints.ts';
import { hurryFailingChange } from '../db/operations.ts';
import type { NewProject, ProjectRow } from '../db/projects.ts';
import { daySeconds } from '../lib/clock.ts';
import type { Config } from '../lib/config.ts';
import { CatnapError, invalid, notFound } from '../lib/errors.ts';
import { type BranchId, type EndpointId, newEndpointId, type ProjectId } from '../lib/ids.ts';
import {
  type Caller,
  planOfProject,
  requireBranch,
  requireEndpoint,
  requireProject,
  requireProjectLocked,
} from './access.ts';
import { whyNoRoom } from './capacity.ts';
import type { CommandScope, Scope } from './context.ts';
import { requireNotHeld } from './disk-guard.ts';
import { requireEndpointSettings } from './endpoint-settings.ts';
import { cancelAhead, computeKeys, enqueue, type Operation, requireRoomInQueue } from './operation.ts';
import type { Plan } from './plan.ts';
import { requireQuotaLeft } from './quota.ts';
import { requireReplicaAllowed } from './replica.ts';
import { requireProvisioner } from './single-values.ts';
import { requireSize, resolveSize } from './sizing.ts';

export type Endpoint = EndpointRow;

const suspendTimeoutMaxSeconds = 7 * daySeconds;

export interface EndpointOptions {
  readonly type: EndpointType;
  readonly name?: string | undefined;
  readonly minCu?: number | undefined;
  readonly maxCu?: number | undefined;
  readonly suspendTimeoutSeconds?: number | undefined;
  readonly settings?: EndpointSettings | undefined;
  readonly provisioner?: string | undefined;
  readonly regionId?: string | undefined;
  readonly poolerEnabled?: boolean | undefined;
  readonly disabled?: boolean | undefined;
  readonly passwordlessAccess?: boolean | undefined;
}

export interface EndpointResult {
  readonly endpoint: Endpoint;
  readonly operations: readonly Operation[];
}

/** The driver's name for a compute. */
export function computeRef(
  row: Pick<Endpoint, 'id' | 'projectId' | 'branchId'> & { readonly tenantUid: number | null },
) {
  const { projectId, branchId, tenantUid } = row;
  return { projectId, tenantUid, branchId, endpointId: row.id };
}

export async function createEndpoint(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  input: EndpointOptions & { readonly branchId: BranchId },
): Promise<EndpointResult> {
  const project = await requireProjectLocked(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, input.branchId);
  await requireRoomInQueue(scope, projectId);
  return insertNewEndpoint(scope, project, branch, input);
}

/** For the creation of branches too. The caller holds the project. */
export async function insertNewEndpoint(
  scope: CommandScope,
  project: ProjectRow,
  branch: BranchRow,
  input: EndpointOptions,
): Promise<EndpointResult> {
  if (input.regionId !== undefined && input.regionId !== project.regionId) {
    throw invalid(`invalid request: region_id must be the project's region, ${project.regionId}`);
  }
  requireProvisioner(input.provisioner, 'provisioner');
  const [plan] = await Promise.all([
    planOfProject(scope, project),
    requireFreePlace(scope, project, branch, input.type),
  ]);
  const row = endpointFrom(scope, project, branch.id, { ...input, plan });
  if (!row.disabled) requireQuotaLeft(scope, project);
  return insertAndStart(scope, row);
}

/** The compute that a new project begins with. The project's row is written by the same command. */
export async function insertFirstEndpoint(
  scope: CommandScope,
  project: NewProject,
  branchId: BranchId,
  plan: Plan,
): Promise<EndpointResult> {
  return insertAndStart(scope, endpointFrom(scope, project, branchId, { type: 'read_write', plan }));
}

async function requireFreePlace(
  scope: CommandScope,
  project: ProjectRow,
  branch: BranchRow,
  type: EndpointType,
): Promise<void> {
  if (type === 'read_only') return requireReplicaAllowed(scope, project, branch);
  const existing = await selectReadWriteEndpoint(scope.tx, branch.id);
  if (existing !== undefined) throw new CatnapError('conflict', 'read_write endpoint already exists');
}

async function insertAndStart(scope: CommandScope, row: NewEndpoint): Promise<EndpointResult> {
  if (row.disabled) return { endpoint: await insertAsleep(scope, row), operations: [] };
  // Sent together, carried out in this order.
  const [endpoint, operation] = await Promise.all([
    insertEndpoint(scope.tx, row, 'active'),
    enqueue(scope, 'start_compute', computeKeys(row)),
  ]);
  return { endpoint, operations: [operation] };
}

/** For a branch that people may want to look at: their first connection wakes it. The caller holds the project. */
export async function insertSleepingEndpoint(
  scope: CommandScope,
  project: ProjectRow,
  branch: BranchRow,
  input: EndpointOptions,
): Promise<Endpoint> {
  const plan = await planOfProject(scope, project);
  return insertAsleep(scope, endpointFrom(scope, project, branch.id, { ...input, plan }));
}

async function insertAsleep(scope: CommandScope, row: NewEndpoint): Promise<Endpoint> {
  const { id } = await insertEndpoint(scope.tx, row, null);
  return updateEndpoint(scope.tx, id, { currentState: 'idle' });
}

function endpointFrom(
  scope: CommandScope,
  project: Pick<ProjectRow, 'id' | 'defaultEndpointSettings'>,
  branchId: BranchId,
  { plan, ...input }: EndpointOptions & { readonly plan: Plan },
): NewEndpoint {
  const defaults = project.defaultEndpointSettings;
  const size = resolveSize(input, {
    minCu: defaults.autoscaling_limit_min_cu,
    maxCu: defaults.autoscaling_limit_max_cu,
  });
  requireSize(size, plan);
  const suspendTimeoutSeconds = input.suspendTimeoutSeconds ?? defaults.suspend_timeout_seconds;
  requireSuspendTimeout(suspendTimeoutSeconds, plan, scope.config);
  const pgSettings = defaults.pg_settings === undefined ? {} : { pg_settings: defaults.pg_settings };
  return {
    id: newEndpointId(),
    projectId: project.id,
    branchId,
    type: input.type,
    name: input.name ?? null,
    ...size,
    suspendTimeoutSeconds,
    settings: { ...pgSettings, ...(input.settings && requireEndpointSettings(input.settings, scope.config)) },
    poolerEnabled: input.poolerEnabled ?? true,
    disabled: input.disabled ?? false,
    passwordlessAccess: input.passwordlessAccess ?? true,
  };
}

export function requireSuspendTimeout(seconds: number, plan: Plan, config: Pick<Config, 'suspendMinSeconds'>): void {
  if (seconds === 0) return;
  if (!plan.canChangeSuspend) {
    throw invalid(`invalid request: suspend_timeout_seconds must be 0 (the default) on the plan "${plan.name}"`);
  }
  if (seconds === -1) return;
  const minSeconds = config.suspendMinSeconds;
  if (seconds < minSeconds || seconds > suspendTimeoutMaxSeconds) {
    throw invalid(
      `invalid request: suspend_timeout_seconds must be 0 (default), -1 (never) or ${minSeconds} to ${suspendTimeoutMaxSeconds}`,
    );
  }
}

export async function listEndpoints(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  branchId?: BranchId,
): Promise<Endpoint[]> {
  await requireProject(scope, caller, projectId);
  if (branchId !== undefined) await requireBranch(scope, projectId, branchId);
  return selectEndpoints(scope.sql, projectId, branchId);
}

export async function getEndpoint(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  id: EndpointId,
): Promise<Endpoint> {
  // Read together; whether the project may be seen is judged first.
  const [, endpoint] = await Promise.all([
    requireProject(scope, caller, projectId),
    selectEndpoint(scope.sql, projectId, id),
  ]);
  if (endpoint === undefined) throw notFound('endpoint');
  return endpoint;
}

export async function startEndpoint(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: EndpointId,
): Promise<EndpointResult> {
  const project = await requireProjectLocked(scope, caller, projectId);
  const endpoint = await requireEndpoint(scope, projectId, id);
  if (endpoint.disabled) throw new CatnapError('precondition_failed', 'endpoint is disabled');
  if (isOrWillBe(endpoint, 'active')) return { endpoint, operations: [] };
  requireQuotaLeft(scope, project);
  requireNotHeld(endpoint);
  const noRoom = await whyNoRoom(scope, id, endpoint.minCu);
  if (noRoom !== null) throw new CatnapError('unprocessable', noRoom);
  return queueStart(scope, endpoint);
}

/** The only way to start a compute, apart from a wake's shortcut (`core/wake.ts`). The caller holds the project. */
export async function queueStart(scope: CommandScope, endpoint: Endpoint, priority = 0): Promise<EndpointResult> {
  const [, pending, operation] = await Promise.all([
    requireRoomInQueue(scope, endpoint.projectId),
    updateEndpoint(scope.tx, endpoint.id, { pendingState: 'active' }),
    enqueue(scope, 'start_compute', { ...computeKeys(endpoint), priority }),
  ]);
  return { endpoint: pending, operations: [operation] };
}

export async function suspendEndpoint(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: EndpointId,
): Promise<EndpointResult> {
  await requireProjectLocked(scope, caller, projectId);
  const endpoint = await requireEndpoint(scope, projectId, id);
  if (isOrWillBe(endpoint, 'idle')) return { endpoint, operations: [] };
  await requireRoomInQueue(scope, projectId);
  return queueSuspend(scope, endpoint);
}

/**
 * The only way to put a compute to sleep. Its route is closed at once, and a change that fails again and again does not
 * hold it up: what is pending is carried out at the next start. The caller holds the project.
 */
export async function queueSuspend(scope: CommandScope, endpoint: Endpoint): Promise<EndpointResult> {
  await hurryFailingChange(scope.tx, endpoint.id, scope.clock.now());
  const pending = await updateEndpoint(scope.tx, endpoint.id, { pendingState: 'idle', address: null });
  return { endpoint: pending, operations: [await enqueue(scope, 'suspend_compute', computeKeys(endpoint))] };
}

export function isOrWillBe(endpoint: Endpoint, state: 'active' | 'idle'): boolean {
  return (endpoint.pendingState ?? endpoint.currentState) === state;
}

export async function deleteEndpoint(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: EndpointId,
): Promise<EndpointResult> {
  await requireProjectLocked(scope, caller, projectId);
  const found = await requireEndpoint(scope, projectId, id);
  const branch = await requireBranch(scope, projectId, found.branchId);
  if (branch.protected) throw new CatnapError('unprocessable', 'cannot delete an endpoint of a protected branch');
  const endpoint = await lockEndpoint(scope.tx, id);
  if (endpoint === undefined) throw notFound('endpoint');
  await cancelAhead(scope.tx, projectId, { endpointId: id });
  const wasActive = endpoint.currentState === 'active';
  const deleted = await updateEndpoint(scope.tx, id, {
    deletingAt: scope.clock.now(),
    address: null,
    ...(wasActive ? { pendingState: 'idle' } : {}),
  });
  const job = wasActive ? 'suspend_and_remove_compute' : 'remove_compute';
  const operation = await enqueue(scope, job, computeKeys(endpoint));
  return { endpoint: deleted, operations: operation.action === null ? [] : [operation] };
}
