/**
 * Makes a server match its row: settings, size, branch, roles and databases. It reloads where that is enough, restarts
 * where it is not, wakes a sleeping compute for it, and stops one that has moved to another branch.
 */
import type { ComputeSpec } from '../compute/interface/driver.ts';
import { recordCatalog } from '../core/catalog.ts';
import { syncUsersBeforeRoute } from '../core/users-sync.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import type { Tx } from '../db/client.ts';
import { type EndpointRow, lockEndpoint, updateEndpoint, updateReplication } from '../db/endpoints.ts';
import {
  deleteOwnerlessDatabases,
  type GivenUp,
  restoreChangedDatabases,
  restoreDroppedDatabases,
  restoreDroppedRoles,
} from '../db/taken-back.ts';
import { asBranchId, type BranchId } from '../lib/ids.ts';
import type { ServerCatalog } from '../lib/model.ts';
import { applyCatalog, bringUpSteps, failFrom, observeStarted, recordUp, serverState } from './compute-steps.ts';
import {
  type ComputeTarget,
  done,
  goto,
  type Job,
  type Step,
  type StepContext,
  type StepResult,
  skip,
} from './step.ts';
import { computeSpec, findCompute, findComputeInPlace, goneOrMoved, isBeingRemoved } from './target.ts';

const observe: Step = async (context) => {
  if (branchLeft(context) !== null) return goto('leave_branch');
  const target = await findComputeInPlace(context);
  if (target === undefined || isBeingRemoved(target)) return skip(goneOrMoved);
  const seen = await context.driver.observe(target.ref);
  return goto(seen.state === 'running' ? 'reload' : 'fence');
};

/** The branch that the compute was moved away from by this operation. */
function branchLeft({ operation }: StepContext): BranchId | null {
  const { moved_from: from } = operation.state;
  return typeof from === 'string' ? asBranchId(from) : null;
}

/** The server still runs on the old branch's directory; what owners changed there by SQL belongs to that branch. */
const leaveBranch: Step = async (context) => {
  const target = await findCompute(context);
  const left = branchLeft(context);
  if (target === undefined || left === null || isBeingRemoved(target)) return skip('the endpoint is gone');
  if (target.endpoint.type === 'read_only') return leavePrimary(context, target);
  const ref = { ...target.ref, branchId: left };
  const seen = await context.driver.observe(ref);
  const isOnIt = seen.state === 'running' && seen.branchId === left;
  const catalog = isOnIt ? await context.driver.readCatalog(ref) : null;
  await context.driver.suspend(target.ref, target.endpoint.generation);
  return done(async (tx) => {
    if (catalog !== null) await recordCatalog(tx, left, { roles: [], databases: [] }, catalog);
  });
};

/** A replica has nothing of its own: its data and its slot at the primary that it leaves are removed. */
async function leavePrimary({ driver }: StepContext, { ref, endpoint }: ComputeTarget): Promise<StepResult> {
  // Refused if a newer start is known, which `removeCompute` would not notice.
  await driver.suspend(ref, endpoint.generation);
  await driver.removeCompute(ref);
  return done(async (tx) => {
    await updateReplication(tx, endpoint.id, null);
  });
}

const reload: Step = async (context) => {
  const target = await findComputeInPlace(context);
  if (target === undefined) return skip(goneOrMoved);
  const { endpoint } = target;
  const spec = computeSpec(context, target, endpoint.generation);
  const isServed = isServing(endpoint, spec);
  if (isServed && !hasLostRoute(endpoint)) return goto('apply');
  // Size and network are more than settings: they mean one restart, whatever the settings need.
  const needRestart = !isServed && (!hasFrame(endpoint, spec) || (await context.driver.reload(spec)).length > 0);
  if (needRestart) {
    // The route is closed first: pooled clients start nothing new here, and wait for the restarted server.
    return goto('stop', async (tx) => {
      await updateEndpoint(tx, endpoint.id, { address: null });
    });
  }
  const seen = await context.driver.observe(target.ref);
  return goto('apply', async (tx) => {
    await updateEndpoint(tx, endpoint.id, { server: serverState(target, seen) });
    const now = await lockEndpoint(tx, endpoint.id);
    if (now !== undefined && hasLostRoute(now) && seen.generation === now.generation) {
      await updateEndpoint(tx, endpoint.id, { address: seen.address });
    }
  });
};

/**
 * It was closed for a restart, but the worker did not hear that this was committed, and tried again when no restart was
 * needed any more.
 */
function hasLostRoute({ currentState, pendingState, address }: EndpointRow): boolean {
  return currentState === 'active' && pendingState === null && address === null;
}

/** What a running server cannot be given. */
function hasFrame({ server, minCu, maxCu }: EndpointRow, { network }: ComputeSpec): boolean {
  if (server === null || server.minCu !== minCu || server.maxCu !== maxCu) return false;
  return (server.outbound === true) === (network === 'outside');
}

function isServing(endpoint: EndpointRow, spec: ComputeSpec): boolean {
  const { server } = endpoint;
  if (server === null || !hasFrame(endpoint, spec)) return false;
  const { settings } = spec;
  const names = new Set([...Object.keys(settings), ...Object.keys(server.settings)]);
  return [...names].every((name) => settings[name] === server.settings[name]);
}

const stop: Step = async (context) => {
  const target = await findComputeInPlace(context);
  if (target === undefined) return skip(goneOrMoved);
  await context.driver.suspend(target.ref, target.endpoint.generation);
  return goto('fence', async (tx) => {
    await updateEndpoint(tx, target.endpoint.id, { currentState: 'idle', pendingState: 'active', address: null });
  });
};

/** Before roles and databases: if the server refuses a change of those, it must still be on record as running. */
const openRoute: Step = async (context) => {
  const target = await findComputeInPlace(context);
  if (target === undefined) return skip(goneOrMoved);
  await syncUsersBeforeRoute(context, target);
  return goto('apply', recordUp(context, target, await observeStarted(context, target)));
};

const apply: Step = async (context) => {
  const target = await findComputeInPlace(context);
  if (target === undefined) return skip(goneOrMoved);
  const applied = await applyCatalog(context, target).catch(async (error: unknown) => {
    await lookAtLast(context, target);
    return failFrom('observe', context, target, error);
  });
  return done(applied.write, applied.note);
};

/** Some of the changes may have been carried out, which whoever gives up has to know. */
async function lookAtLast({ driver, memory }: StepContext, { ref, endpoint }: ComputeTarget): Promise<void> {
  delete memory.held;
  if (endpoint.type === 'read_only') return;
  const held = await driver.readCatalog(ref).catch(() => undefined);
  if (held !== undefined) memory.held = held;
}

/**
 * What could not be dropped still exists, and is shown again; what could not be renamed or given to another owner is
 * shown as it was. Where nobody knows what the server holds, the next start carries out what is left.
 */
async function takeBack(tx: Tx, givenUp: GivenUp, held: ServerCatalog | null): Promise<void> {
  const { branchId } = givenUp;
  const isKnown = held !== null || (await selectBranchInAnyState(tx, branchId))?.catalogKept === true;
  if (!isKnown) return;
  await restoreDroppedRoles(tx, givenUp);
  await restoreDroppedDatabases(tx, givenUp);
  if (held === null) return;
  await restoreChangedDatabases(tx, givenUp, held);
  await recordCatalog(tx, branchId, { roles: [], databases: [] }, held);
  await deleteOwnerlessDatabases(tx, givenUp);
}

export const applyConfig: Job = {
  steps: {
    observe,
    leave_branch: leaveBranch,
    reload,
    stop,
    ...bringUpSteps('open_route'),
    open_route: openRoute,
    apply,
  },
  /** A compute that failed to start is not pending. */
  giveUp: async (tx, { operation, memory }) => {
    const { id, branchId } = operation;
    if (branchId === null || operation.endpointId === null) return;
    await takeBack(tx, { id, branchId }, memory.held ?? null);
    // It may have been stopped for good in a commit that the worker did not hear of.
    const wasComingUp = ['stop', 'fence', 'spawn', 'await_ready', 'open_route'].includes(operation.step);
    const isDown = wasComingUp && (await lockEndpoint(tx, operation.endpointId))?.currentState !== 'active';
    if (isDown) await updateEndpoint(tx, operation.endpointId, { pendingState: null, reservedCu: null });
  },
};
