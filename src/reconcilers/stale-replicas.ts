/**
 * Read replicas that run but no longer follow: the primary has thrown away what they have not got yet, or has grown
 * beyond the settings they run with. They are restarted; the start builds them anew or gives them larger settings. How
 * far behind the others are is written down on the way.
 */
import type { ReplicaObservation } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { queueStart, queueSuspend } from '../core/endpoint.ts';
import { isOutgrown } from '../core/replica.ts';
import {
  type EndpointRow,
  lockEndpoint,
  selectActiveEndpoints,
  selectReadWriteEndpoint,
  updateReplication,
} from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { lockProject, selectProject } from '../db/projects.ts';
import { onItsOwn, type Reconciler, type ReconcilerParts } from './reconciler.ts';

export const staleReplicas: Reconciler = {
  name: 'stale-replicas',
  everyMs: 5_000,
  turn: async (parts) => {
    const active = await selectActiveEndpoints(parts.core.database.sql);
    const replicas = active.filter(({ type, pendingState }) => type === 'read_only' && pendingState === null);
    for (const replica of replicas) await onItsOwn(parts, replica.id, () => check(parts, replica));
  },
};

async function check(parts: ReconcilerParts, seen: EndpointRow): Promise<void> {
  const { core, log } = parts;
  const reason = await whyStale(parts, seen);
  if (reason === null) return;
  await core.database.transaction(async (tx) => {
    const endpoint = (await lockProject(tx, seen.projectId)) && (await lockEndpoint(tx, seen.id));
    const isStill = endpoint?.currentState === 'active' && endpoint.generation === seen.generation;
    if (!isStill || (await selectUnfinishedForEndpoint(tx, seen.id)) !== undefined) return;
    log.warn({ endpoint: seen.id, reason }, 'a read replica no longer follows its primary; it is restarted');
    const scope = commandScope(core, tx);
    await queueSuspend(scope, endpoint);
    await queueStart(scope, endpoint);
  });
}

async function whyStale(parts: ReconcilerParts, replica: EndpointRow): Promise<string | null> {
  const { sql } = parts.core.database;
  const primary = await selectReadWriteEndpoint(sql, replica.branchId);
  // What a sleeping primary has is not lost, and a suspend or start under way is not the time to ask.
  const isSettled = primary?.currentState === 'active' && primary.pendingState === null;
  const seen = isSettled ? await observe(parts, replica) : null;
  await recordLag(parts, replica, seen);
  if (seen?.lost) return 'it is too far behind';
  const grown = isSettled && isOutgrown(replica.server?.settings ?? {}, primary.server?.settings ?? {});
  return grown ? 'its primary has grown' : null;
}

async function observe({ core, driver }: ReconcilerParts, replica: EndpointRow): Promise<ReplicaObservation | null> {
  const project = await selectProject(core.database.sql, replica.projectId);
  if (project === undefined) return null;
  const { branchId, id: endpointId } = replica;
  return driver.observeReplica({ projectId: project.id, tenantUid: project.tenantUid, branchId, endpointId });
}

/** For people to see. Without a primary that is awake there is nothing to be behind of. */
async function recordLag({ core }: ReconcilerParts, replica: EndpointRow, seen: ReplicaObservation | null) {
  const lag = seen?.lag ? { lagBytes: seen.lag.bytes, lagSeconds: seen.lag.seconds } : null;
  const known = replica.replication;
  if (lag?.lagBytes === known?.lagBytes && lag?.lagSeconds === known?.lagSeconds) return;
  await updateReplication(core.database.sql, replica.id, lag);
}
