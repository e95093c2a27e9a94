/**
 * Copies a branch's data for a new one. A parent that is awake goes on serving; keys that other copies of it share keep
 * it from starting, stopping and going away meanwhile. Should its server die, the copy fails and is tried again. A
 * branch that is to have the schema only is emptied before anybody can see it.
 */
import { recordCatalog } from '../core/catalog.ts';
import { copyLogicalSize, updateBranch, updateLogicalSize } from '../db/branches.ts';
import { readSource } from './copy-source.ts';
import { abandonIfFull, done, goto, type Job, type Step, skip, wait } from './step.ts';
import { adminSecretOf, findBranch } from './target.ts';

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
    const record = { receipt, parentLsn: receipt.lsn };
    if (target.branch.initSource === 'schema-only') {
      return goto('empty', async (tx) => {
        await updateBranch(tx, target.branch.id, record);
        return undefined;
      });
    }
    return done(async (tx) => {
      await updateBranch(tx, target.branch.id, { ...record, currentState: 'ready', pendingState: null });
      await copyLogicalSize(tx, parentId, target.branch.id);
      return undefined;
    });
  });
};

/** Until this is over the branch is not ready, and nothing can be started on it. */
const empty: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined || target.branch.deletingAt !== null) return skip('the branch is gone');
  const { pgVersion } = target.project;
  await context.driver.emptyBranch({ ...target.ref, pgVersion, adminSecret: adminSecretOf(context, target.project) });
  return done(async (tx) => {
    await updateBranch(tx, target.branch.id, { currentState: 'ready', pendingState: null });
    return undefined;
  });
};

export const createBranch: Job = {
  steps: { read_parent: readParent, copy, empty },
  giveUp: async (tx, { operation }) => {
    if (operation.branchId !== null) await updateBranch(tx, operation.branchId, { pendingState: null });
  },
};
