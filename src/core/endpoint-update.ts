/**
 * Changes to a compute. The row is the intent; operations carry it out. A change of size restarts the server once, a
 * change of settings reloads it where that is enough, a move ends with the compute asleep on its new branch. A
 * replica's data is that of its old branch, so a move removes it, and the next start copies the new primary.
 */
import {
  type EndpointSettings,
  endpointChange,
  selectEndpoints,
  selectReadWriteEndpoint,
  updateEndpoint,
} from '../db/endpoints.ts';
import type { ProjectRow } from '../db/projects.ts';
import type { Config } from '../lib/config.ts';
import { CatnapError, withDetails } from '../lib/errors.ts';
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { type Caller, planOfProject, requireBranch, requireEndpoint, requireProjectLocked } from './access.ts';
import type { CommandScope } from './context.ts';
import { isHeld, requireNotHeld } from './disk-guard.ts';
import {
  type Endpoint,
  type EndpointResult,
  isOrWillBe,
  queueStart,
  queueSuspend,
  requireSuspendTimeout,
} from './endpoint.ts';
import { areServersAlike, canonical, requireEndpointSettings, type ServerWish } from './endpoint-settings.ts';
import { branchKey, computeKeys, enqueue, type Operation, requireRoomInQueue } from './operation.ts';
import { requireQuotaLeft, spentQuota } from './quota.ts';
import { requirePrimary } from './replica.ts';
import { requireProvisioner } from './single-values.ts';
import { requireSize } from './sizing.ts';

export interface EndpointChanges {
  readonly minCu?: number | undefined;
  readonly maxCu?: number | undefined;
  readonly suspendTimeoutSeconds?: number | undefined;
  readonly branchId?: BranchId | undefined;
  readonly disabled?: boolean | undefined;
  readonly name?: string | undefined;
  readonly settings?: EndpointSettings | undefined;
  readonly provisioner?: string | undefined;
  readonly poolerEnabled?: boolean | undefined;
  readonly passwordlessAccess?: boolean | undefined;
}

interface Address {
  readonly projectId: ProjectId;
  readonly endpointId: EndpointId;
}

export async function updateEndpointOf(
  scope: CommandScope,
  caller: Caller,
  address: Address,
  changes: EndpointChanges,
): Promise<EndpointResult> {
  const project = await requireProjectLocked(scope, caller, address.projectId);
  const endpoint = await requireEndpoint(scope, address.projectId, address.endpointId);
  requireProvisioner(changes.provisioner, 'body.endpoint.provisioner');
  const next = withChanges(endpoint, changes, scope.config);
  const plan = await planOfProject(scope, project);
  if (next.minCu !== endpoint.minCu || next.maxCu !== endpoint.maxCu) requireSize(next, plan);
  if (next.suspendTimeoutSeconds !== endpoint.suspendTimeoutSeconds) {
    requireSuspendTimeout(next.suspendTimeoutSeconds, plan, scope.config);
  }
  const changed = differences(endpoint, next);
  if (Object.keys(changed).length === 0) return { endpoint, operations: [] };
  await requireRoomInQueue(scope, project.id);
  if (changed.branchId !== undefined) await requireTarget(scope, endpoint, changed.branchId);
  const updated = await updateEndpoint(scope.tx, endpoint.id, changed);
  return queueChange(scope, { project, plan, endpoint }, { project, plan, endpoint: updated });
}

export async function restartEndpoint(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: EndpointId,
): Promise<EndpointResult> {
  const project = await requireProjectLocked(scope, caller, projectId);
  const endpoint = await requireEndpoint(scope, projectId, id);
  if (endpoint.currentState !== 'active' || endpoint.pendingState === 'idle') {
    const state = endpoint.pendingState === 'idle' ? 'falling asleep' : endpoint.currentState;
    throw new CatnapError('precondition_failed', withDetails('only an active endpoint can be restarted', { state }));
  }
  requireQuotaLeft(scope, project);
  requireNotHeld(endpoint);
  await requireRoomInQueue(scope, projectId);
  const stopped = await queueSuspend(scope, endpoint);
  const started = await queueStart(scope, stopped.endpoint);
  return { endpoint: started.endpoint, operations: [...stopped.operations, ...started.operations] };
}

type Editable = Pick<
  Endpoint,
  | 'minCu'
  | 'maxCu'
  | 'suspendTimeoutSeconds'
  | 'branchId'
  | 'disabled'
  | 'name'
  | 'settings'
  | 'poolerEnabled'
  | 'passwordlessAccess'
>;

function withChanges(endpoint: Endpoint, changes: EndpointChanges, config: Config): Editable {
  const settings = changes.settings && requireEndpointSettings(changes.settings, config);
  return {
    minCu: changes.minCu ?? endpoint.minCu,
    maxCu: changes.maxCu ?? endpoint.maxCu,
    suspendTimeoutSeconds: changes.suspendTimeoutSeconds ?? endpoint.suspendTimeoutSeconds,
    branchId: changes.branchId ?? endpoint.branchId,
    disabled: changes.disabled ?? endpoint.disabled,
    name: changes.name ?? endpoint.name,
    // A part of the settings that is given replaces the previous one; the other parts stay.
    settings: settings === undefined ? endpoint.settings : { ...endpoint.settings, ...settings },
    poolerEnabled: changes.poolerEnabled ?? endpoint.poolerEnabled,
    passwordlessAccess: changes.passwordlessAccess ?? endpoint.passwordlessAccess,
  };
}

/** Only what differs, so that an update without a change does nothing. */
function differences(endpoint: Endpoint, next: Editable): Partial<Editable> {
  const isSame = (a: unknown, b: unknown) => canonical(a) === canonical(b);
  const entries = Object.entries(next).filter(([key, value]) => !isSame(endpoint[key as keyof Editable], value));
  return Object.fromEntries(entries) as Partial<Editable>;
}

async function requireTarget(scope: CommandScope, endpoint: Endpoint, branchId: BranchId): Promise<void> {
  const target = await requireBranch(scope, endpoint.projectId, branchId);
  if (endpoint.type === 'read_only') return requirePrimary(scope, target);
  if ((await selectReadWriteEndpoint(scope.tx, target.id)) !== undefined) {
    throw new CatnapError('conflict', 'read_write endpoint already exists');
  }
}

/** A sleeping compute that may not be woken (no quota or no disk left) gets the change at its next start. */
async function queueChange(scope: CommandScope, from: ServerWish, to: ServerWish): Promise<EndpointResult> {
  const [before, after] = [from.endpoint, to.endpoint];
  if (after.branchId !== before.branchId) return queueMove(scope, before, after);
  const asleep = isOrWillBe(before, 'idle');
  if (after.disabled && !before.disabled && !asleep) return queueSuspend(scope, after);
  const mayWake = spentQuota(to.project, scope.clock.now()) === null && !isHeld(after);
  const mayRun = !after.disabled && (!asleep || mayWake);
  if (!mayRun || areServersAlike(from, to)) return { endpoint: after, operations: [] };
  const apply = await enqueue(scope, 'apply_config', { ...computeKeys(after), state: endpointChange });
  const endpoint = { ...after, isChanging: true };
  if (!asleep) return { endpoint, operations: [apply] };
  // Woken to prove that the change works, and put back to sleep.
  return { endpoint, operations: [apply, await enqueue(scope, 'suspend_compute', computeKeys(after))] };
}

/**
 * After a change of the project: its computes that are awake get what has changed for them, primaries before the
 * replicas that follow them. The others get it at their next start. The caller holds the project.
 */
export async function queueProjectChange(
  scope: CommandScope,
  before: ProjectRow,
  after: ProjectRow,
): Promise<Operation[]> {
  const plan = await planOfProject(scope, after);
  const affected = (await selectEndpoints(scope.tx, after.id))
    .filter((endpoint) => isOrWillBe(endpoint, 'active') && !endpoint.disabled)
    .filter((endpoint) => !areServersAlike({ project: before, endpoint, plan }, { project: after, endpoint, plan }))
    .sort((a, b) => Number(a.type === 'read_only') - Number(b.type === 'read_only'));
  if (affected.length > 0) await requireRoomInQueue(scope, after.id);
  const operations: Operation[] = [];
  for (const endpoint of affected) {
    operations.push(await enqueue(scope, 'apply_config', { ...computeKeys(endpoint), state: endpointChange }));
  }
  return operations;
}

/**
 * Both branches' directories are held: the compute leaves one and may be woken on the other only after that. A replica
 * shares them, as always: its old primary must not start or stop while the replica's slot is removed there.
 */
async function queueMove(scope: CommandScope, before: Endpoint, after: Endpoint): Promise<EndpointResult> {
  const keys = computeKeys(after);
  const left = branchKey(before.branchId);
  const held = 'shared' in keys ? { shared: [...keys.shared, left] } : { exclusive: [...keys.exclusive, left] };
  const state = { moved_from: before.branchId };
  const apply = await enqueue(scope, 'apply_config', { ...keys, ...held, state });
  const suspended = await queueSuspend(scope, after);
  return { endpoint: suspended.endpoint, operations: [apply, ...suspended.operations] };
}
