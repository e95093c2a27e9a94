/** Deletes snapshots whose time is up, as if their owner had done it. */
import { commandScope } from '../core/context.ts';
import { queueSnapshotDeletion } from '../core/snapshot.ts';
import { lockProject } from '../db/projects.ts';
import { type SnapshotRow, selectExpiredSnapshots, selectSnapshot } from '../db/snapshots.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const expiredSnapshots = makeReconciler('expired-snapshots', 5_000, async (parts) => {
  const now = parts.core.clock.now();
  const expired = await selectExpiredSnapshots(parts.core.database.sql, now);
  return expired.map((snapshot) => ({ subject: snapshot.id, work: () => deleteIfStillExpired(parts, snapshot, now) }));
});

async function deleteIfStillExpired(
  { core, log }: ReconcilerParts,
  { projectId, id }: Pick<SnapshotRow, 'id' | 'projectId'>,
  now: Date,
): Promise<void> {
  await core.database.transaction(async (tx) => {
    if ((await lockProject(tx, projectId)) === undefined) return;
    const snapshot = await selectSnapshot(tx, projectId, id);
    if (snapshot?.expiresAt == null || snapshot.expiresAt > now) return;
    log.info({ snapshot: id }, 'a snapshot has expired and is deleted');
    await queueSnapshotDeletion(commandScope(core, tx), snapshot);
  });
}
