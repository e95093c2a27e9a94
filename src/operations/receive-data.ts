/**
 * Waits for the data of a branch or snapshot that `catnap restore` brings from a backup, and puts it into use. The
 * bringer works with the rights of the person who runs it, beside this worker; when it dies, the operation ends and
 * says so, and the same command continues.
 */
import type { BranchReceipt } from '../compute/interface/driver.ts';
import { updateBranch } from '../db/branches.ts';
import { isDelivering, selectDelivery } from '../db/deliveries.ts';
import { updateSnapshot } from '../db/snapshots.ts';
import { findSnapshot } from './create-snapshot.ts';
import { abandon, done, type Job, type Step, type StepContext, skip, type Write, wait } from './step.ts';
import { findBranch } from './target.ts';

const askAgainMs = 1_000;

const receive: Step = async (context) => {
  const { operation, core } = context;
  const { sql } = core.database;
  const use = await findUse(context);
  if (use === undefined) return skip('it was deleted');
  // In this order: a bringer that ends between the two has recorded before what it brought.
  const isUnderWay = await isDelivering(sql, operation.projectId);
  const delivery = await selectDelivery(sql, operation.id);
  if (delivery === undefined) return abandon('nothing brings its data');
  if (delivery.failure !== null) return abandon(delivery.failure);
  if (delivery.receipt !== null) return done(use(delivery.receipt as BranchReceipt));
  if (isUnderWay) return wait(askAgainMs);
  return abandon(`the restore from ${delivery.origin.from} was cut off: the same catnap restore continues it`);
};

async function findUse(context: StepContext): Promise<((receipt: BranchReceipt) => Write) | undefined> {
  if (context.operation.state.snapshot !== undefined) {
    const target = await findSnapshot(context);
    if (target === undefined || target.snapshot.deletingAt !== null) return undefined;
    return (receipt) => async (tx) => {
      await updateSnapshot(tx, target.snapshot.id, { currentState: 'ready', receipt });
    };
  }
  const target = await findBranch(context);
  if (target === undefined || target.branch.deletingAt !== null) return undefined;
  return (receipt) => async (tx) => {
    await updateBranch(tx, target.branch.id, { currentState: 'ready', pendingState: null, receipt });
  };
}

export const receiveData: Job = {
  steps: { receive },
  /** A branch stays `init` with nothing pending, as one whose copy failed. */
  giveUp: async (tx, { operation }) => {
    if (operation.branchId !== null) await updateBranch(tx, operation.branchId, { pendingState: null });
  },
};
