/** Computes that run and should not: a start that was given up left its server behind. They are suspended. */
import type { ComputeObservation } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import { lockEndpoint } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { lockProject } from '../db/projects.ts';
import { onItsOwn, type Reconciler, type ReconcilerParts } from './reconciler.ts';

export const strayComputes: Reconciler = {
  name: 'stray-computes',
  everyMs: 5_000,
  turn: async (parts) => {
    for (const compute of await parts.driver.list()) {
      await onItsOwn(parts, compute.endpointId, () => check(parts, compute));
    }
  },
};

async function check({ core, log }: ReconcilerParts, seen: ComputeObservation): Promise<void> {
  await core.database.transaction(async (tx) => {
    const endpoint = (await lockProject(tx, seen.projectId)) && (await lockEndpoint(tx, seen.endpointId));
    // Without a row there is nobody to ask: a deletion is under way, or the data home belongs to another database.
    if (endpoint === undefined || endpoint.currentState === 'active') return;
    if ((await selectUnfinishedForEndpoint(tx, endpoint.id)) !== undefined) return;
    log.warn({ endpoint: endpoint.id }, 'a compute runs that should sleep; it is suspended');
    await enqueue(commandScope(core, tx), 'suspend_compute', computeKeys(endpoint));
  });
}
