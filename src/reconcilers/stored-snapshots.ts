/**
 * Has a base image made of each snapshot where there is a store to upload it to, and removed again where there is none.
 * A snapshot never changes, so each is handled once in the life of this process.
 */
import { dataOf } from '../core/snapshot.ts';
import { selectReadySnapshots } from '../db/snapshots.ts';
import { daySeconds } from '../lib/clock.ts';
import type { SnapshotId } from '../lib/ids.ts';
import { makeReconciler, type Reconciler } from './reconciler.ts';

const everyMs = 5_000;

export function makeStoredSnapshots(): Reconciler {
  const handled = new Set<SnapshotId>();
  /** Those whose failure was logged already. */
  const failing = new Set<SnapshotId>();
  return makeReconciler('stored-snapshots', everyMs, async ({ core, driver }) => {
    const snapshots = await selectReadySnapshots(core.database.sql);
    const known = new Set(snapshots.map(({ id }) => id));
    for (const ids of [handled, failing]) for (const id of ids) if (!known.has(id)) ids.delete(id);
    // Any time will do: nothing of a snapshot becomes too old.
    const retentionSeconds = core.config.backup === undefined ? 0 : daySeconds;
    const waiting = snapshots.filter(({ id }) => !handled.has(id));
    return waiting.map(({ id, projectId, tenantUid }) => ({
      subject: id,
      work: async () => {
        try {
          await driver.keepHistory(
            { projectId, branchId: dataOf(id), tenantUid },
            { retentionSeconds, isSnapshot: true },
          );
          handled.add(id);
          failing.delete(id);
        } catch (error) {
          if (failing.has(id)) return;
          failing.add(id);
          throw error;
        }
      },
    }));
  });
}
