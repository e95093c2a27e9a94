/** Puts computes to sleep that no client has used for as long as their owner allows. */
import type { WorkObservation } from '../compute/interface/driver.ts';
import { computeRef, queueSuspend } from '../core/endpoint.ts';
import { isDueForObservation, sleepsAt } from '../core/idleness.ts';
import { branchKey, endpointKey } from '../core/operation.ts';
import {
  type ActiveCompute,
  type EndpointRow,
  selectActiveComputes,
  selectEndpoint,
  updateWorkSeen,
  type WorkSeen,
} from '../db/endpoints.ts';
import { areKeysHeld } from '../db/operations.ts';
import { actIfStill, isSameLife } from './recheck.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const idleComputes = makeReconciler('idle-computes', 1_000, async (parts) => {
  const active = await selectActiveComputes(parts.core.database.sql);
  const due = active.filter((endpoint) => isDueForObservation(endpoint, parts.core.clock.now()));
  return due.map((endpoint) => ({ subject: endpoint.id, work: () => suspendIfIdle(parts, endpoint) }));
});

function isDue({ core }: ReconcilerParts, endpoint: EndpointRow): boolean {
  const at = sleepsAt(endpoint);
  return at !== null && at <= core.clock.now();
}

async function suspendIfIdle(parts: ReconcilerParts, seen: ActiveCompute): Promise<void> {
  const { core, driver, log } = parts;
  const observed = await driver.observeWork(computeRef(seen)).catch(async (error: unknown) => {
    if (await isOnItsWay(parts, seen)) return null;
    throw error;
  });
  if (observed === null) return;
  const workSeen = asWorkSeen(observed, core.clock.now());
  await updateWorkSeen(core.database.sql, seen.id, workSeen);
  if (workSeen.work !== null || !isDue(parts, { ...seen, workSeen })) return;
  // A connection may have come meanwhile, and its report counts.
  const isStillIdle = (endpoint: EndpointRow) =>
    endpoint.currentState === 'active' && endpoint.pendingState !== 'idle' && isDue(parts, endpoint);
  await actIfStill(core, seen, isStillIdle, async (scope, endpoint) => {
    // Also keys that only keep it from stopping, as for a copy of its data: a suspend would close its route and wait.
    if (await areKeysHeld(scope.tx, seen.projectId, [endpointKey(seen.id), branchKey(seen.branchId)])) {
      const description = 'an operation that needs it, or its branch, is under way';
      return updateWorkSeen(scope.tx, seen.id, { ...workSeen, work: { kind: 'operation', description } });
    }
    log.info({ endpoint: seen.id }, 'an idle compute is put to sleep');
    await queueSuspend(scope, endpoint);
  });
}

/** A server that somebody stops, moves or removes meanwhile says that it shuts down, which is no failure. */
async function isOnItsWay({ core }: ReconcilerParts, seen: ActiveCompute): Promise<boolean> {
  const endpoint = await selectEndpoint(core.database.sql, seen.projectId, seen.id);
  return endpoint === undefined || endpoint.pendingState !== null || !isSameLife(seen)(endpoint);
}

/** Work that goes on now has not ended yet, so idle time counts from now. */
function asWorkSeen({ work, lastWorkAt }: WorkObservation, now: Date): WorkSeen {
  const observedAt = now.toISOString();
  if (work === null) return { observedAt, lastWorkAt: lastWorkAt?.toISOString() ?? null, work: null };
  const { kind, description, pid, role, applicationName, slot, since } = work;
  return {
    observedAt,
    lastWorkAt: observedAt,
    work: {
      kind,
      description,
      pid,
      since: since.toISOString(),
      ...(role === null ? {} : { role }),
      ...(applicationName === null ? {} : { applicationName }),
      ...(slot === null ? {} : { slot }),
    },
  };
}
