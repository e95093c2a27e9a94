/** Makes a branch from a snapshot: a copy of the snapshot's data, and the roles and databases of its moment. */
import { type CatalogSnapshot, putCatalogSnapshot } from '../core/catalog-snapshot.ts';
import { dataOf } from '../core/snapshot.ts';
import { updateBranch, updateCatalogKept } from '../db/branches.ts';
import { recallPasswords } from '../db/roles.ts';
import { findSnapshot } from './create-snapshot.ts';
import { abandon, abandonIfHopeless, done, type Job, type Step, skip } from './step.ts';
import { adminSecretOf, findBranch } from './target.ts';

const copy: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined || target.branch.deletingAt !== null) return skip('the branch is gone');
  const { snapshot } = (await findSnapshot(context)) ?? {};
  if (snapshot === undefined || snapshot.currentState !== 'ready') return abandon('the snapshot has no data');
  const { id } = target.branch;
  const spec = {
    ...target.ref,
    pgVersion: target.project.pgVersion,
    source: { kind: 'branch', branchId: dataOf(snapshot.id) } as const,
  };
  return abandonIfHopeless(async () => {
    const { receipt } = await context.driver.createBranch(spec);
    if (target.project.settings.enable_logical_replication) {
      await context.driver.detachBranch({ ...spec, adminSecret: adminSecretOf(context, target.project) });
    }
    return done(async (tx) => {
      await putCatalogSnapshot(tx, id, snapshot.catalog as CatalogSnapshot, null);
      await recallPasswords(tx, target.project.id, id);
      await updateCatalogKept(tx, id, false);
      await updateBranch(tx, id, {
        receipt,
        logicalSize: snapshot.logicalSize,
        // Until it has taken the place of another branch, it cannot be changed.
        ...(context.operation.state.finalize !== true && { currentState: 'ready', pendingState: null }),
      });
    });
  });
};

export const restoreSnapshot: Job = {
  steps: { copy },
  giveUp: async (tx, { operation }) => {
    if (operation.branchId === null) return;
    await updateBranch(tx, operation.branchId, { currentState: 'init', pendingState: null });
  },
};
