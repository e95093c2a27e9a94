/**
 * Computes that run and should not: a start that was given up left its server behind, or a suspend that was given up
 * had closed the route. They are suspended.
 */
import type { ComputeObservation } from '../compute/interface/driver.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import type { EndpointRow } from '../db/endpoints.ts';
import { actIfUntouched } from './recheck.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const strayComputes = makeReconciler('stray-computes', 5_000, async (parts) => {
  const running = await parts.driver.list();
  return running.map((compute) => ({ subject: compute.endpointId, work: () => suspendIfStray(parts, compute) }));
});

/** Without a row it is not known: a deletion is under way, or the data home belongs to another database. */
async function suspendIfStray({ core, log }: ReconcilerParts, seen: ComputeObservation): Promise<void> {
  const { endpointId: id, projectId } = seen;
  const isStray = ({ currentState, pendingState, address }: EndpointRow) =>
    currentState !== 'active' || (pendingState === null && address === null);
  await actIfUntouched(core, { id, projectId }, isStray, async (scope, endpoint) => {
    log.warn({ endpoint: id }, 'a compute runs that should sleep; it is suspended');
    await enqueue(scope, 'suspend_compute', computeKeys(endpoint));
  });
}
