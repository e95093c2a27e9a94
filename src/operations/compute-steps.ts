/**
 * The steps that bring a server up, shared by every operation that needs one running: raise the fence, spawn, wait
 * until it answers, then go to the step that the operation names; and what is recorded when the server is up.
 */

import { availableParallelism, totalmem } from 'node:os';
import type { CatalogChange, ComputeObservation, MadeWay } from '../compute/interface/driver.ts';
import { ServerRefusalError } from '../compute/interface/refusal.ts';
import { takeRoom } from '../core/capacity.ts';
import { type PendingCatalog, recordCatalog, selectPendingCatalog } from '../core/catalog.ts';
import { commandScope } from '../core/context.ts';
import { heldMessage, isHeld } from '../core/disk-guard.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import { spentQuota } from '../core/quota.ts';
import { memoryBytes } from '../core/sizing.ts';
import { updateCatalogKept } from '../db/branches.ts';
import type { Tx } from '../db/client.ts';
import { type EndpointRow, lockEndpoint, type ServerState, updateEndpoint } from '../db/endpoints.ts';
import { selectLastOf, selectUnfinishedForEndpoint } from '../db/operations.ts';
import { delay } from '../lib/clock.ts';
import { prepareReplica } from './replica-data.ts';
import {
  abandon,
  type ComputeTarget,
  done,
  goto,
  type Step,
  type StepContext,
  StepFailure,
  type StepResult,
  skip,
  type Write,
  wait,
} from './step.ts';
import {
  computeSpec,
  findComputeAtClaim,
  findStartingCompute,
  goneOrMoved,
  isDeleted,
  settingsOf,
  takesNoWrites,
} from './target.ts';
import { type AtOnce, openAtOnce, raise } from './wake/quick-way.ts';

const probeIntervalMs = 4;
/** How long one run of the step probes before it releases the worker for a moment. */
const probeBurstMs = 2_000;

export function bringUpSteps(next: string): Record<'fence' | 'spawn' | 'await_ready', Step> {
  return { fence, spawn, await_ready: (context) => awaitReady(context, next) };
}

/** The new generation is committed before anything starts, so that an older worker's late start is refused. */
const fence: Step = async (context) => {
  const target = await findComputeAtClaim(context);
  if (target === undefined || isDeleted(target)) return skip(goneOrMoved);
  if (target.branch.currentState === 'init') return abandon('the branch has no data to serve');
  const isUp = context.operation.job === 'start_compute' ? await whenUpAlready(context, target) : null;
  if (isUp !== null) return isUp;
  const spent = spentQuota(target.project, context.core.clock.now());
  if (spent !== null) return abandon(spent.message);
  if (isHeld(target.endpoint)) return abandon(heldMessage);
  const noRoom = await takeRoom(context.core, target.endpoint.id, target.size.minCu);
  if (noRoom !== null) return abandon(noRoom);
  context.memory.compute = target;
  return raise('spawn', target.endpoint.id);
};

/**
 * A client that came while another operation restarted the compute has queued a start after that operation: by then the
 * server runs, and must not be started a second time.
 */
async function whenUpAlready(context: StepContext, { endpoint, ref }: ComputeTarget): Promise<StepResult | null> {
  if (endpoint.currentState !== 'active') return null;
  const seen = await context.driver.observe(ref);
  if (seen.state !== 'running' || seen.generation !== endpoint.generation) return null;
  return done(async (tx) => {
    const now = await lockEndpoint(tx, endpoint.id);
    if (now?.pendingState === 'active') {
      await updateEndpoint(tx, endpoint.id, { pendingState: null, address: seen.address });
    }
  });
}

const spawn: Step = async (context) => {
  const target = await findStartingCompute(context);
  if (target === undefined) return skip(goneOrMoved);
  const spec = computeSpec(context, target, startedGeneration(context));
  const instead = spec.readOnly ? await prepareReplica(context, target, spec) : null;
  if (instead !== null) return instead;
  sayIfLarge(context, target.size.maxCu);
  const seen = await context.driver.start(spec);
  if (seen !== null) context.memory.seen = seen;
  return goto('await_ready');
};

/** A size is a limit, not a reservation: a compute larger than the machine still starts. */
function sayIfLarge({ log }: StepContext, maxCu: number): void {
  const cores = availableParallelism();
  const memory = totalmem();
  if (maxCu <= cores && memoryBytes(maxCu) <= memory) return;
  log.warn({ maxCu, cores, memory }, 'the compute is larger than this machine: it starts, and gets what there is');
}

async function awaitReady(context: StepContext, next: string) {
  if (context.memory.seen !== undefined) return goto(next);
  const target = await findStartingCompute(context);
  if (target === undefined) return skip(goneOrMoved);
  const giveRoomAt = Date.now() + probeBurstMs;
  while (Date.now() < giveRoomAt) {
    const seen = await context.driver.observe(target.ref);
    if (seen.state === 'running') {
      context.memory.seen = seen;
      return goto(next);
    }
    if (seen.state === 'absent') throw new StepFailure('the server ended while it was starting', 'fence');
    await delay(probeIntervalMs);
  }
  return wait(50);
}

export function startedGeneration({ operation }: StepContext): number {
  const { generation } = operation.state;
  if (typeof generation !== 'number') throw new Error('BUG: the operation has no generation');
  return generation;
}

export const nothingToRecord: Write = async () => {};

interface AppliedCatalog {
  readonly write: Write;
  /** What of the tenant's work had to be ended; null when nothing was in the way. */
  readonly note: string | null;
}

/**
 * Carries out what is pending on a running server, which the caller may have read already; the returned write records
 * that, and what the server holds.
 */
export async function applyCatalog(
  context: StepContext,
  target: ComputeTarget,
  known?: PendingCatalog,
): Promise<AppliedCatalog> {
  // A replica gets its roles and databases from its primary.
  if (target.endpoint.type === 'read_only') return { write: nothingToRecord, note: null };
  const pending = known ?? (await selectPendingCatalog(context.core.database.sql, target.branch.id));
  const replication = target.project.settings.enable_logical_replication;
  const seen = await context.driver.configure(target.ref, { ...catalogChange(pending), replication });
  context.memory.held = seen;
  const note = seen.madeWay === undefined ? null : describeWay(seen.madeWay);
  if (note !== null) context.log.warn({ endpoint: target.endpoint.id, ...seen.madeWay }, note);
  const write: Write = async (tx) => {
    await recordCatalog(tx, target.branch.id, pending, seen);
  };
  return { write, note };
}

/**
 * Before a server is stopped for good: what owners changed by SQL, for the branch that it really serves. To be recorded
 * with the outcome of the step: a worker that is late by now has nothing to say.
 */
export async function readWhatRuns({ driver }: StepContext, { ref, endpoint }: ComputeTarget): Promise<Write> {
  if (endpoint.type === 'read_only') return nothingToRecord;
  const { state, branchId } = await driver.observe(ref);
  if (state !== 'running' || branchId === null) return nothingToRecord;
  const seen = await driver.readCatalog(ref);
  return async (tx) => {
    await recordCatalog(tx, branchId, { roles: [], databases: [] }, seen);
  };
}

function describeWay({ sessions, prepared }: MadeWay): string {
  const names = prepared.map((gid) => JSON.stringify(gid)).join(', ');
  return [
    'ended what was in the way of the change:',
    ...(sessions > 0 ? [`${sessions} ${sessions === 1 ? 'session' : 'sessions'}`] : []),
    ...(sessions > 0 && names !== '' ? ['and'] : []),
    ...(names === ''
      ? []
      : [`${prepared.length === 1 ? 'the prepared transaction' : 'the prepared transactions'} ${names}`]),
  ].join(' ');
}

/** A failure that is no refusal mostly passes. The first role of a project has no other operation that brings it. */
const patientFailures = 3;

/**
 * As `applyCatalog`, for a start: a change that the server refuses must not keep the compute from coming up. It stays
 * pending, and the operation that was queued for it reports why it fails.
 */
export async function applyCatalogIfPossible(
  context: StepContext,
  target: ComputeTarget,
  pending: PendingCatalog,
): Promise<Write> {
  try {
    return (await applyCatalog(context, target, pending)).write;
  } catch (error) {
    if (!(error instanceof ServerRefusalError) && context.operation.failuresCount < patientFailures) throw error;
    context.log.warn({ err: error }, 'pending changes of roles and databases could not be applied at the start');
    const seen = await context.driver.readCatalog(target.ref);
    return async (tx) => {
      await recordCatalog(tx, target.branch.id, { roles: [], databases: [] }, seen);
      await reportLater(context, tx, target.endpoint);
    };
  }
}

/** The first role and database of a project come with its first start, and have no operation of their own to fail. */
async function reportLater({ core }: StepContext, tx: Tx, endpoint: EndpointRow): Promise<void> {
  const last = await selectLastOf(tx, endpoint.id, 'apply_config');
  const isReported = last !== undefined && last.status !== 'finished' && last.status !== 'skipped';
  if (!isReported) await enqueue(commandScope(core, tx), 'apply_config', computeKeys(endpoint));
}

function catalogChange(pending: PendingCatalog): CatalogChange {
  const live = <T extends { droppedAt: Date | null }>(rows: readonly T[]) =>
    rows.filter((row) => row.droppedAt === null);
  const roles = live(pending.roles);
  return {
    roles: roles.map(({ name, verifier, limited, applied }) => ({
      name,
      verifier,
      ...(limited && { limited }),
      // A role that the server has already, and that is pending again, was reset.
      ...(applied && { endSessions: true }),
    })),
    databases: live(pending.databases).map(({ name, ownerName, appliedName }) => ({
      name,
      ownerName,
      renameFrom: appliedName === name ? null : appliedName,
    })),
    dropDatabases: pending.databases.filter((row) => row.droppedAt !== null).map((row) => row.appliedName ?? row.name),
    // A role dropped and made again under the same name stays: only its password is new.
    dropRoles: pending.roles
      .filter((row) => row.droppedAt !== null && !roles.some((role) => role.name === row.name))
      .map((row) => row.name),
  };
}

/** The observation of the very server that this operation started; fails if another one runs or none. */
export async function observeStarted(context: StepContext, target: ComputeTarget): Promise<ComputeObservation> {
  const seen = context.memory.seen ?? (await context.driver.observe(target.ref));
  if (seen.state !== 'running' || seen.generation !== startedGeneration(context)) {
    throw new StepFailure('the server ended before its route could open', 'fence');
  }
  return seen;
}

/** After a failure: a server that has died meanwhile would fail again, so it is started anew. */
export async function failFrom(
  retryFrom: string,
  context: StepContext,
  target: ComputeTarget,
  cause: unknown,
): Promise<never> {
  const seen = await context.driver.observe(target.ref);
  if (seen.state === 'running') throw cause;
  throw new StepFailure('the server ended before the work on it was done', retryFrom, { cause });
}

export function recordUp(context: StepContext, target: ComputeTarget, seen: ComputeObservation): Write {
  return async (tx) => {
    const serving = servingFacts(context, target, seen);
    const [last] = await Promise.all([
      selectUnfinishedForEndpoint(tx, target.endpoint.id),
      // From now on owners can change them by SQL.
      isPrimary(target) ? updateCatalogKept(tx, target.branch.id, false) : undefined,
      updateEndpoint(tx, target.endpoint.id, { ...serving, currentState: 'active', pendingState: null }),
    ]);
    const suspendFollows = last?.id !== context.operation.id && last?.job === 'suspend_compute';
    if (suspendFollows) await updateEndpoint(tx, target.endpoint.id, { pendingState: 'idle', address: null });
  };
}

/** The same for a usual wake: nothing was requested of the compute meanwhile, and there is nothing else to record. */
export function recordUpAtOnce(context: StepContext, target: ComputeTarget, seen: ComputeObservation): AtOnce {
  return openAtOnce(context.operation, {
    ...servingFacts(context, target, seen),
    endpointId: target.endpoint.id,
    branchId: isPrimary(target) ? target.branch.id : null,
    generation: seen.generation,
  });
}

const isPrimary = ({ endpoint }: ComputeTarget) => endpoint.type === 'read_write';

function servingFacts(context: StepContext, target: ComputeTarget, seen: ComputeObservation) {
  return {
    address: seen.address,
    currentCu: seen.isEnforced ? target.size.minCu : null,
    startedAt: context.core.clock.now(),
    server: serverState(target, seen),
  };
}

export function serverState(target: ComputeTarget, seen: ComputeObservation): ServerState {
  const { minCu, maxCu } = target.endpoint;
  return {
    settings: settingsOf(target),
    minCu,
    maxCu,
    given: target.size,
    release: seen.release,
    ...(takesNoWrites(target) && { writesOff: true, isDiskFull: target.endpoint.diskGuard !== null }),
    ...(target.project.settings.allow_outbound_connections && { outbound: true }),
  };
}
