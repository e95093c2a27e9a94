/**
 * Computes that run and should not: a start that was given up left its server behind, or came late to a compute that
 * had been deleted; or a suspend that was given up had closed the route. They are suspended.
 */
import type { ComputeObservation } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { queueStops } from '../core/deletion.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import { lockAnyProject } from '../db/deleted.ts';
import { type EndpointRow, lockEndpoint, selectEndpointInAnyState } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import type { ProjectRow } from '../db/projects.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const strayComputes = makeReconciler('stray-computes', 5_000, async (parts) => {
  const running = await parts.driver.list();
  return running.map((compute) => ({ subject: compute.endpointId, work: () => suspendIfStray(parts, compute) }));
});

/** Without a row it is not known: a deletion is under way, or the data home belongs to another database. */
async function suspendIfStray({ core, log }: ReconcilerParts, seen: ComputeObservation): Promise<void> {
  const { endpointId: id, projectId } = seen;
  await core.database.transaction(async (tx) => {
    const project = await lockAnyProject(tx, projectId);
    const endpoint = (await lockEndpoint(tx, id)) ?? (await selectEndpointInAnyState(tx, id));
    if (project === undefined || endpoint === undefined || !isStray(endpoint)) return;
    if (isOnItsWayOut(project) || isOnItsWayOut(endpoint)) return;
    // What is under way knows more than an observation.
    if ((await selectUnfinishedForEndpoint(tx, id)) !== undefined) return;
    log.warn({ endpoint: id }, 'a compute runs that should sleep; it is suspended');
    const scope = commandScope(core, tx);
    const isDeleted = project.deletingAt !== null || endpoint.deletingAt !== null;
    if (isDeleted) await queueStops(scope, [endpoint]);
    else await enqueue(scope, 'suspend_compute', computeKeys(endpoint));
  });
}

const isStray = ({ currentState, pendingState, address }: EndpointRow) =>
  currentState !== 'active' || (pendingState === null && address === null);

/** Its last operation is queued, and leaves nothing running. */
const isOnItsWayOut = ({ deletingAt, recoverableUntil }: ProjectRow | EndpointRow) =>
  deletingAt !== null && recoverableUntil === null;
