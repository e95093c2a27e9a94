/** Brings a compute up and opens its route. The API's start, a wake, a restart and recovery all come through here. */
import { selectPendingCatalog } from '../core/catalog.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import { applyCatalogIfPossible, bringUpSteps, nothingToRecord } from './compute-steps.ts';
import type { ComputeTarget } from './compute-target.ts';
import { failFrom, observeStarted, recordUp } from './server-up.ts';
import { done, type Job, type Step, type StepContext, skip, type Write } from './step.ts';
import { findStartingCompute } from './target.ts';
import { bringUsersUp } from './users-stage.ts';

/**
 * After a nap the server holds what was recorded when it fell asleep. Only when that is not certain, after an accident
 * say, or something is pending, it is worth a session of Catnap's before the client gets its own.
 */
async function bringCatalogUpToDate(context: StepContext, target: ComputeTarget): Promise<Write> {
  const { branch } = target;
  const pending = await selectPendingCatalog(context.core.database.sql, branch.id);
  const nothingPending = pending.roles.length === 0 && pending.databases.length === 0;
  if (nothingPending && branch.catalogKept) return nothingToRecord;
  return applyCatalogIfPossible(context, target);
}

const openRoute: Step = async (context) => {
  const target = await findStartingCompute(context);
  if (target === undefined) return skip('the endpoint is gone');
  const recordCatalog = await bringCatalogUpToDate(context, target).catch((error: unknown) =>
    failFrom('fence', context, target, error),
  );
  await bringUsersUp(context, target);
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
    const asleep = { currentState: 'idle', pendingState: null, address: null, reservedCu: null } as const;
    await updateEndpoint(tx, operation.endpointId, asleep);
  },
};
