/** What is recorded when a server has come up: its state, its route unless a suspend follows, and what it was given. */
import type { ComputeObservation } from '../compute/interface/driver.ts';
import { updateCatalogKept } from '../db/branches.ts';
import { type ServerState, updateEndpoint } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { startedGeneration } from './compute-steps.ts';
import { type StepContext, StepFailure, type Write } from './step.ts';
import type { ComputeTarget } from './target.ts';
import { settingsOf } from './target.ts';
import { type AtOnce, openAtOnce } from './wake/quick-way.ts';

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
  return { settings: settingsOf(target), minCu, maxCu, given: target.size, release: seen.release };
}
