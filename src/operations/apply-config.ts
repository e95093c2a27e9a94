/** Carries changed roles and databases into the server, waking it for that if it sleeps. */
import { restoreDroppedDatabases } from '../db/databases.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import { restoreDroppedRoles } from '../db/roles.ts';
import { applyCatalog, bringUpSteps } from './compute-steps.ts';
import { done, goto, type Job, type Step, skip } from './step.ts';
import { findCompute } from './target.ts';

const look: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined || target.endpoint.deletingAt !== null) return skip('the endpoint is gone');
  const seen = await context.driver.observe(target.ref);
  return goto(seen.state === 'running' ? 'apply' : 'fence');
};

const apply: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined) return skip('the endpoint is gone');
  const record = await applyCatalog(context, target);
  return done(async (tx) => {
    await record(tx);
    // Woken for this only: it runs, which the row must say, but its route stays shut and a suspend is queued behind.
    if (target.endpoint.currentState === 'idle') {
      await updateEndpoint(tx, target.endpoint.id, { currentState: 'active', pendingState: 'idle' });
    }
    return undefined;
  });
};

export const applyConfig: Job = {
  steps: { look, ...bringUpSteps('apply'), apply },
  /** What could not be dropped is still there, and is shown again. */
  giveUp: async (tx, { operation }) => {
    if (operation.branchId === null) return;
    await restoreDroppedRoles(tx, operation.branchId);
    await restoreDroppedDatabases(tx, operation.branchId);
  },
};
