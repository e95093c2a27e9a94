/**
 * Restarts computes that never sleep and have an update waiting, inside their project's maintenance window. Other
 * computes get their updates when they wake. One that was started since the window opened is left alone: a restart
 * that did not help is not repeated.
 */
import { queueStart, queueSuspend } from '../core/endpoint.ts';
import { pendingUpdate, windowOpenedAt } from '../core/pending-update.ts';
import { type NeverSleeping, selectNeverSleeping } from '../db/endpoints.ts';
import { actIfUntouched, isSameLife } from './recheck.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const makeMaintenance = (releases: Readonly<Record<number, string>>) =>
  makeReconciler('maintenance', 30_000, async (parts) => {
    const now = parts.core.clock.now();
    const due = (await selectNeverSleeping(parts.core.database.sql)).filter(
      (compute) => pendingUpdate(compute, releases) !== null && isDue(compute, now),
    );
    return due.map((compute) => ({ subject: compute.id, work: () => restart(parts, compute) }));
  });

function isDue({ maintenanceWindow, startedAt, createdAt }: NeverSleeping, now: Date): boolean {
  const openedAt = windowOpenedAt(maintenanceWindow, now);
  return openedAt !== null && (startedAt ?? createdAt) < openedAt;
}

async function restart({ core, log }: ReconcilerParts, seen: NeverSleeping): Promise<void> {
  await actIfUntouched(core, seen, isSameLife(seen), async (scope, endpoint) => {
    log.info({ endpoint: seen.id }, 'a compute is restarted in its maintenance window, for an update');
    await queueSuspend(scope, endpoint);
    await queueStart(scope, endpoint);
  });
}
