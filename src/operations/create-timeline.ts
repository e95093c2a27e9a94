/** Gives a project's first branch its data: a copy of the prepared template. */
import { updateBranch } from '../db/branches.ts';
import { abandonIfHopeless, done, type Job, type Step, skip, type Write } from './step.ts';
import { findBranch } from './target.ts';
import { readyAtOnce } from './wake/quick-way.ts';

const copy: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined || target.branch.deletingAt !== null) return skip('the branch is gone');
  const spec = { ...target.ref, pgVersion: target.project.pgVersion, source: { kind: 'template' } as const };
  return abandonIfHopeless(async () => {
    const { receipt } = await context.driver.createBranch(spec);
    const { id } = target.branch;
    const write: Write = async (tx) => {
      await updateBranch(tx, id, { currentState: 'ready', pendingState: null, receipt });
    };
    return done(write, null, readyAtOnce(context.operation, id, receipt));
  });
};

export const createTimeline: Job = {
  steps: { copy },
  /** The branch stays `init` with nothing pending: visibly not ready, and the operation says why. */
  giveUp: async (tx, { operation }) => {
    if (operation.branchId !== null) await updateBranch(tx, operation.branchId, { pendingState: null });
  },
};
