/**
 * Copies a branch's data for a new one. A parent that is awake goes on serving; keys that other copies of it share keep
 * it from starting, stopping and going away meanwhile. Should its server die, the copy fails and is tried again.
 */
import { recordCatalog } from '../core/catalog.ts';
import { copyLogicalSize, updateBranch, updateLogicalSize } from '../db/branches.ts';
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import { emptyChange } from './compute-steps.ts';
import { abandonIfFull, done, goto, type Job, type Step, skip, wait } from './step.ts';
import { findBranch, findCompute } from './target.ts';

const parentStartsMs = 50;

/** Roles and passwords that were changed by SQL are in the copy, so the new branch must know them. */
const readParent: Step = async (context) => {
  const target = await findBranch(context);
  const parentId = target?.branch.parentId ?? null;
  if (target === undefined || parentId === null) return skip('the branch is gone');
  const compute = await selectReadWriteEndpoint(context.core.database.sql, parentId);
  const parent = compute && (await findCompute(context, compute.id));
  if (parent === undefined) return goto('copy');
  const seen = await context.driver.observe(parent.ref);
  if (seen.state === 'starting') return wait(parentStartsMs);
  if (seen.state === 'absent') return goto('copy');
  const [catalog, bytes] = await Promise.all([
    context.driver.configure(parent.ref, emptyChange),
    context.driver.observeSize(parent.ref),
  ]);
  return goto('copy', async (tx) => {
    const nothing = { roles: [], databases: [] };
    await recordCatalog(tx, parent.branch.id, nothing, catalog);
    await recordCatalog(tx, target.branch.id, nothing, catalog);
    if (bytes !== null) await updateLogicalSize(tx, parent.branch.id, bytes);
    return undefined;
  });
};

const copy: Step = async (context) => {
  const target = await findBranch(context);
  const parentId = target?.branch.parentId ?? null;
  if (target === undefined || parentId === null) return skip('the branch is gone');
  const spec = {
    ...target.ref,
    pgVersion: target.project.pgVersion,
    source: { kind: 'branch', branchId: parentId } as const,
  };
  return abandonIfFull(async () => {
    const receipt = await context.driver.createBranch(spec);
    return done(async (tx) => {
      const made = { currentState: 'ready', pendingState: null, receipt, parentLsn: receipt.lsn } as const;
      await updateBranch(tx, target.branch.id, made);
      await copyLogicalSize(tx, parentId, target.branch.id);
      return undefined;
    });
  });
};

export const createBranch: Job = {
  steps: { read_parent: readParent, copy },
  giveUp: async (tx, { operation }) => {
    if (operation.branchId !== null) await updateBranch(tx, operation.branchId, { pendingState: null });
  },
};
