/** Makes a changed window of history hold at once for all branches of a project, so that what is given up is free. */
import { type KeptBranch, recordHistory, selectKeptBranches } from '../db/histories.ts';
import type { BranchHistory } from '../lib/model.ts';
import { done, type Job, nothingToUndo, type Step } from './step.ts';

const keep: Step = async ({ core, driver, operation }) => {
  const branches = await selectKeptBranches(core.database.sql, { projectId: operation.projectId });
  const kept: { readonly branch: KeptBranch; readonly history: BranchHistory }[] = [];
  for (const branch of branches) {
    const { id: branchId, projectId, tenantUid, retentionSeconds } = branch;
    const history = await driver.keepHistory({ projectId, branchId, tenantUid }, { retentionSeconds });
    if (history !== null) kept.push({ branch, history });
  }
  return done(async (tx) => {
    for (const { branch, history } of kept) await recordHistory(tx, branch, history);
  });
};

export const applyStorageConfig: Job = { steps: { keep }, giveUp: nothingToUndo };
