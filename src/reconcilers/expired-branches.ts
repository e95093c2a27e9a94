/** Deletes branches whose time is up, as if their owner had done it. */
import { queueBranchDeletion } from '../core/branch.ts';
import { commandScope } from '../core/context.ts';
import { type BranchRow, selectBranch, selectExpiredBranches } from '../db/branches.ts';
import { lockProject } from '../db/projects.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const expiredBranches = makeReconciler('expired-branches', 5_000, async (parts) => {
  const now = parts.core.clock.now();
  const expired = await selectExpiredBranches(parts.core.database.sql, now);
  return expired.map((branch) => ({ subject: branch.id, work: () => deleteIfStillExpired(parts, branch, now) }));
});

async function deleteIfStillExpired(
  { core, log }: ReconcilerParts,
  { projectId, id }: Pick<BranchRow, 'id' | 'projectId'>,
  now: Date,
): Promise<void> {
  await core.database.transaction(async (tx) => {
    await lockProject(tx, projectId);
    const branch = await selectBranch(tx, projectId, id);
    if (branch?.expiresAt == null || branch.expiresAt > now || branch.currentState === 'resetting') return;
    log.info({ branch: id }, 'a branch has expired and is deleted');
    await queueBranchDeletion(commandScope(core, tx), branch, 'ttl');
  });
}
