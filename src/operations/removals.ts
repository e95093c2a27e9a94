/** Deletions: of a compute, of a branch's data, of a whole project. They work from every state and undo nothing. */
import { deleteBranchRow } from '../db/branches.ts';
import { deleteEndpointRow } from '../db/endpoints.ts';
import { deleteProjectRow } from '../db/projects.ts';
import { done, type Job, nothingToUndo, type Step, skip } from './step.ts';
import { findBranch, findCompute, findProject, tenantRef } from './target.ts';

const removeComputeStep: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined) return skip('the endpoint is gone');
  await context.driver.removeCompute(target.ref);
  return done(async (tx) => {
    await deleteEndpointRow(tx, target.endpoint.id);
  });
};

const removeBranchStep: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined) return skip('the branch is gone');
  await context.driver.removeBranch(target.ref);
  return done(async (tx) => {
    await deleteBranchRow(tx, target.branch.id);
  });
};

/** The branch was hidden by the request that deleted it: nothing is left to do, but everybody who watches is told. */
const recordHiding: Step = async () => done();

const removeProjectStep: Step = async (context) => {
  const project = await findProject(context);
  if (project === undefined) return skip('the project is gone');
  await context.driver.removeProject(tenantRef(project));
  return done(async (tx) => {
    await deleteProjectRow(tx, project.id);
  });
};

export const removeCompute: Job = { steps: { remove: removeComputeStep }, giveUp: nothingToUndo };
export const deleteTimeline: Job = { steps: { remove: removeBranchStep }, giveUp: nothingToUndo };
export const hideBranch: Job = { steps: { record: recordHiding }, giveUp: nothingToUndo };
export const deleteProject: Job = { steps: { remove: removeProjectStep }, giveUp: nothingToUndo };
