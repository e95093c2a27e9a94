/** Computes that nobody has used for as long as their owner allows are put to sleep. */
import type { ComputeRef, WorkObservation } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { queueSuspend } from '../core/endpoint.ts';
import { isDueForLook, sleepsAt } from '../core/idleness.ts';
import { branchKey, endpointKey } from '../core/operation.ts';
import {
  type EndpointRow,
  lockEndpoint,
  selectActiveEndpoints,
  updateWorkSeen,
  type WorkSeen,
} from '../db/endpoints.ts';
import { areKeysHeld } from '../db/operations.ts';
import { lockProject, selectProject } from '../db/projects.ts';
import { onItsOwn, type Reconciler, type ReconcilerParts } from './reconciler.ts';

export const idleComputes: Reconciler = {
  name: 'idle-computes',
  everyMs: 1_000,
  turn: async (parts) => {
    const due = (await selectActiveEndpoints(parts.core.database.sql)).filter((endpoint) =>
      isDueForLook(endpoint, parts.core.clock.now()),
    );
    for (const endpoint of due) await onItsOwn(parts, endpoint.id, () => suspendIfIdle(parts, endpoint));
  },
};

function isDue({ core }: ReconcilerParts, endpoint: EndpointRow): boolean {
  const at = sleepsAt(endpoint);
  return at !== null && at <= core.clock.now();
}

async function suspendIfIdle(parts: ReconcilerParts, seen: EndpointRow): Promise<void> {
  const { core, driver, log } = parts;
  const project = await selectProject(core.database.sql, seen.projectId);
  if (project === undefined) return;
  const ref: ComputeRef = {
    projectId: project.id,
    tenantUid: project.tenantUid,
    branchId: seen.branchId,
    endpointId: seen.id,
  };
  const workSeen = asWorkSeen(await driver.observeWork(ref), core.clock.now());
  await updateWorkSeen(core.database.sql, seen.id, workSeen);
  if (workSeen.work !== null || !isDue(parts, { ...seen, workSeen })) return;
  await core.database.transaction(async (tx) => {
    const endpoint = (await lockProject(tx, seen.projectId)) && (await lockEndpoint(tx, seen.id));
    // Looked at again under the lock: a connection may have come meanwhile, and its report counts.
    if (endpoint?.currentState !== 'active' || endpoint.pendingState === 'idle' || !isDue(parts, endpoint)) return;
    // Also what only keeps it from stopping, as a copy of its data does: a suspend would shut its route and wait.
    if (await areKeysHeld(tx, seen.projectId, [endpointKey(seen.id), branchKey(seen.branchId)])) {
      const description = 'an operation that needs it, or its branch, is under way';
      return updateWorkSeen(tx, seen.id, { ...workSeen, work: { kind: 'operation', description } });
    }
    log.info({ endpoint: seen.id }, 'an idle compute is put to sleep');
    await queueSuspend(commandScope(core, tx), endpoint);
  });
}

/** What goes on now has not ended yet, so the time since counts from here. */
function asWorkSeen({ work, lastWorkAt }: WorkObservation, now: Date): WorkSeen {
  const observedAt = now.toISOString();
  if (work === null) return { observedAt, lastWorkAt: lastWorkAt?.toISOString() ?? null, work: null };
  const { kind, description, pid, role, applicationName, slot, since } = work;
  return {
    observedAt,
    lastWorkAt: observedAt,
    work: {
      ...{ kind, description, pid, since: since.toISOString() },
      ...(role === null ? {} : { role }),
      ...(applicationName === null ? {} : { applicationName }),
      ...(slot === null ? {} : { slot }),
    },
  };
}
