/**
 * Computes that run and should not: a start that was given up left its server behind, or came late to a compute that
 * had been deleted; or a suspend that was given up had closed the route. They are suspended, and removed if they were.
 */
import type { ComputeObservation } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { queueStops } from '../core/deletion.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import type { Sql } from '../db/client.ts';
import { lockAnyProject } from '../db/deleted.ts';
import { type EndpointRow, lockEndpoint, selectEndpointInAnyState } from '../db/endpoints.ts';
import { selectLastOf, selectUnfinishedForEndpoint } from '../db/operations.ts';
import type { ProjectRow } from '../db/projects.ts';
import type { EndpointId } from '../lib/ids.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const strayComputes = makeReconciler('stray-computes', 5_000, async (parts) => {
  const running = await parts.driver.list();
  return running.map((compute) => ({ subject: compute.endpointId, work: () => suspendIfStray(parts, compute) }));
});

async function suspendIfStray({ core, driver, log }: ReconcilerParts, seen: ComputeObservation): Promise<void> {
  const { endpointId: id, projectId, branchId } = seen;
  const removedFrom = await core.database.transaction(async (tx) => {
    const project = await lockAnyProject(tx, projectId);
    if (project === undefined || isOnItsWayOut(project)) return;
    // What is under way knows more than an observation.
    if ((await selectUnfinishedForEndpoint(tx, id)) !== undefined) return;
    const endpoint = (await lockEndpoint(tx, id)) ?? (await selectEndpointInAnyState(tx, id));
    if (endpoint === undefined) return (await wasRemoved(tx, id)) ? project : undefined;
    if (!isStray(endpoint) || isOnItsWayOut(endpoint)) return;
    log.warn({ endpoint: id }, 'a compute runs that should sleep; it is suspended');
    const scope = commandScope(core, tx);
    const isDeleted = project.deletingAt !== null || endpoint.deletingAt !== null;
    if (isDeleted) await queueStops(scope, [endpoint]);
    else await enqueue(scope, 'suspend_compute', computeKeys(endpoint));
  });
  if (removedFrom === undefined || branchId === null) return;
  log.warn({ endpoint: id }, 'a compute runs that was removed: its start came late; it is removed again');
  await driver.removeCompute({ projectId, tenantUid: removedFrom.tenantUid, branchId, endpointId: id });
}

/** Others without a row belong to an operation, or to another database than this one. */
async function wasRemoved(sql: Sql, id: EndpointId): Promise<boolean> {
  for (const job of ['remove_compute', 'suspend_and_remove_compute']) {
    if ((await selectLastOf(sql, id, job))?.status === 'finished') return true;
  }
  return false;
}

const isStray = ({ currentState, pendingState, address }: EndpointRow) =>
  currentState !== 'active' || (pendingState === null && address === null);

/** Its last operation is queued, and leaves nothing running. */
const isOnItsWayOut = ({ deletingAt, recoverableUntil }: ProjectRow | EndpointRow) =>
  deletingAt !== null && recoverableUntil === null;
