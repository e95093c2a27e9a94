/** Brings a compute up and opens its route. The API's start, a wake, a restart and recovery all come through here. */
import { updateEndpoint } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { applyCatalogIfPossible, bringUpSteps, startedGeneration } from './compute-steps.ts';
import { done, type Job, type Step, StepFailure, skip } from './step.ts';
import { findCompute } from './target.ts';

const openRoute: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined) return skip('the endpoint is gone');
  const record = await applyCatalogIfPossible(context, target);
  const seen = await context.driver.observe(target.ref);
  if (seen.state !== 'running' || seen.generation !== startedGeneration(context)) {
    throw new StepFailure('the server ended before its route could open', 'fence');
  }
  return done(async (tx) => {
    await record(tx);
    const last = await selectUnfinishedForEndpoint(tx, target.endpoint.id);
    const suspendFollows = last?.id !== context.operation.id && last?.job === 'suspend_compute';
    await updateEndpoint(tx, target.endpoint.id, {
      currentState: 'active',
      pendingState: suspendFollows ? 'idle' : null,
      address: suspendFollows ? null : seen.address,
      startedAt: context.core.clock.now(),
    });
    return undefined;
  });
};

export const startCompute: Job = {
  steps: { ...bringUpSteps('open_route'), open_route: openRoute },
  /** Whatever may still run without a route is found and stopped by the stray-computes reconciler. */
  giveUp: async (tx, { operation }) => {
    if (operation.endpointId === null) return;
    await updateEndpoint(tx, operation.endpointId, { currentState: 'idle', pendingState: null, address: null });
  },
};
