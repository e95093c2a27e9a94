/**
 * Copies a branch's data for a new one. A parent that is awake goes on serving; keys that other copies of it share keep
 * it from starting, stopping and going away meanwhile. Should its server die, the copy fails and is tried again.
 */
import { recordCatalog } from '../core/catalog.ts';
import { copyLogicalSize, updateBranch, updateLogicalSize } from '../db/branches.ts';
import { readSource } from './copy-source.ts';
import { abandonIfFull, done, goto, type Job, type Step, skip, wait } from './step.ts';
import { findBranch } from './target.ts';

const parentStartsMs = 50;

const readParent: Step = async (context) => {
  const target = await findBranch(context);
  const parentId = target?.branch.parentId ?? null;
  if (target === undefined || parentId === null) return skip('the branch is gone');
  const seen = await readSource(context, parentId);
  if (seen === 'starting') return wait(parentStartsMs);
  if (seen === 'asleep') return goto('copy');
  return goto('copy', async (tx) => {
    const nothing = { roles: [], databases: [] };
    await recordCatalog(tx, parentId, nothing, seen.catalog);
    await recordCatalog(tx, target.branch.id, nothing, seen.catalog);
    if (seen.bytes !== null) await updateLogicalSize(tx, parentId, seen.bytes);
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
