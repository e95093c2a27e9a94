/** Branches whose time is up are deleted, as if their owner had done it. */
import { queueBranchDeletion } from '../core/branch.ts';
import { commandScope } from '../core/context.ts';
import { selectBranch, selectExpiredBranches } from '../db/branches.ts';
import { lockProject } from '../db/projects.ts';
import type { Reconciler } from './reconciler.ts';

export const expiredBranches: Reconciler = {
  name: 'expired-branches',
  everyMs: 5_000,
  turn: async ({ core, log }) => {
    const now = core.clock.now();
    for (const expired of await selectExpiredBranches(core.database.sql, now)) {
      await core.database.transaction(async (tx) => {
        await lockProject(tx, expired.projectId);
        const branch = await selectBranch(tx, expired.projectId, expired.id);
        if (branch?.expiresAt == null || branch.expiresAt > now || branch.currentState === 'resetting') return;
        log.info({ branch: branch.id }, 'a branch has expired and is deleted');
        await queueBranchDeletion(commandScope(core, tx), branch);
      });
    }
  },
};
