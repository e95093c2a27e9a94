/** Brings a compute up and opens its route. The API's start, a wake, a restart and recovery all come through here. */
import { updateEndpoint } from '../db/endpoints.ts';
import { applyCatalogIfPossible, bringUpSteps } from './compute-steps.ts';
import { observeStarted, recordUp } from './server-up.ts';
import { done, type Job, type Step, skip } from './step.ts';
import { findCompute } from './target.ts';

const openRoute: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined) return skip('the endpoint is gone');
  const recordCatalog = await applyCatalogIfPossible(context, target);
  const open = recordUp(context, target, await observeStarted(context, target));
  return done(async (tx) => {
    await recordCatalog(tx);
    return open(tx);
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
