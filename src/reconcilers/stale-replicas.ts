/**
 * Read replicas that run but no longer follow: the primary has removed WAL that they have not received, or has grown
 * beyond the settings they run with. They are restarted; the start builds them anew or gives them larger settings. Also
 * records how far behind the others are.
 */
import type { ReplicaObservation } from '../compute/interface/driver.ts';
import { computeRef, queueStart, queueSuspend } from '../core/endpoint.ts';
import { isOutgrown } from '../core/replica.ts';
import {
  type ActiveCompute,
  type EndpointRow,
  selectActiveComputes,
  selectReadWriteEndpoint,
  updateReplication,
} from '../db/endpoints.ts';
import { actIfUntouched, isSameLife } from './recheck.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const staleReplicas = makeReconciler('stale-replicas', 5_000, async (parts) => {
  const active = await selectActiveComputes(parts.core.database.sql);
  const replicas = active.filter(({ type, pendingState }) => type === 'read_only' && pendingState === null);
  return replicas.map((replica) => ({ subject: replica.id, work: () => restartIfStale(parts, replica) }));
});

async function restartIfStale(parts: ReconcilerParts, seen: ActiveCompute): Promise<void> {
  const reason = await whyStale(parts, seen);
  if (reason === null) return;
  await actIfUntouched(parts.core, seen, isSameLife(seen), async (scope, endpoint) => {
    parts.log.warn({ endpoint: seen.id, reason }, 'a read replica no longer follows its primary; it is restarted');
    await queueSuspend(scope, endpoint);
    await queueStart(scope, endpoint);
  });
}

async function whyStale(parts: ReconcilerParts, replica: ActiveCompute): Promise<string | null> {
  const { sql } = parts.core.database;
  const primary = await selectReadWriteEndpoint(sql, replica.branchId);
  // The WAL of a sleeping primary is not lost, and a suspend or start under way is not the time to ask.
  const isSteady = primary?.currentState === 'active' && primary.pendingState === null;
  const seen = isSteady ? await parts.driver.observeReplica(computeRef(replica)) : null;
  await recordLag(parts, replica, seen);
  if (seen?.lost) return 'it is too far behind';
  const grown = isSteady && isOutgrown(replica.server?.settings ?? {}, primary.server?.settings ?? {});
  return grown ? 'its primary has grown' : null;
}

/** For display. Without an awake primary, a replica is behind nothing. */
async function recordLag({ core }: ReconcilerParts, replica: EndpointRow, seen: ReplicaObservation | null) {
  const lag = seen?.lag ? { lagBytes: seen.lag.bytes, lagSeconds: seen.lag.seconds } : null;
  const known = replica.replication;
  if (lag?.lagBytes === known?.lagBytes && lag?.lagSeconds === known?.lagSeconds) return;
  await updateReplication(core.database.sql, replica.id, lag);
}
