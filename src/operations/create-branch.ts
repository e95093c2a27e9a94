/**
 * Copies a sleeping parent's data for a new branch. A parent that is awake sleeps for the copy and is started again
 * after it; the operation then holds the parent's directory and compute for itself alone.
 */
import { recordCatalog } from '../core/catalog.ts';
import { commandScope } from '../core/context.ts';
import { queueStart } from '../core/endpoint.ts';
import { wakePriority } from '../core/operation.ts';
import { updateBranch } from '../db/branches.ts';
import type { Tx } from '../db/client.ts';
import { lockEndpoint, selectReadWriteEndpoint, updateEndpoint } from '../db/endpoints.ts';
import type { EndpointId } from '../ids.ts';
import { asEndpointId } from '../ids.ts';
import { emptyChange } from './compute-steps.ts';
import { done, goto, type Job, type Step, type StepContext, skip } from './step.ts';
import { findBranch, findCompute } from './target.ts';

const quiesceParent: Step = async (context) => {
  const target = await findBranch(context);
  const parentId = target?.branch.parentId ?? null;
  if (target === undefined || parentId === null) return skip('the branch is gone');
  const compute = await selectReadWriteEndpoint(context.core.database.sql, parentId);
  const parent = compute && (await findCompute(context, compute.id));
  if (parent === undefined) return goto('copy');
  const seen = await context.driver.observe(parent.ref);
  if (seen.state === 'absent') return goto('copy');
  const catalog = seen.state === 'running' ? await context.driver.configure(parent.ref, emptyChange) : null;
  return goto('stop_parent', async (tx) => {
    if (catalog !== null) {
      const nothing = { roles: [], databases: [] };
      await recordCatalog(tx, parent.branch.id, nothing, catalog);
      await recordCatalog(tx, target.branch.id, nothing, catalog);
    }
    await updateEndpoint(tx, parent.endpoint.id, { pendingState: 'idle', address: null });
    return { resume: parent.endpoint.id };
  });
};

const stopParent: Step = async (context) => {
  const parent = await findCompute(context, resumedEndpoint(context));
  if (parent === undefined) return goto('copy');
  await context.driver.suspend(parent.ref, parent.endpoint.generation);
  return goto('copy', async (tx) => {
    await updateEndpoint(tx, parent.endpoint.id, { currentState: 'idle', pendingState: 'active', address: null });
    return undefined;
  });
};

const copy: Step = async (context) => {
  const target = await findBranch(context);
  const parentId = target?.branch.parentId ?? null;
  if (target === undefined || parentId === null) return skip('the branch is gone');
  const receipt = await context.driver.createBranch({
    ...target.ref,
    pgVersion: target.project.pgVersion,
    source: { kind: 'branch', branchId: parentId },
  });
  return done(async (tx) => {
    await updateBranch(tx, target.branch.id, {
      currentState: 'ready',
      pendingState: null,
      receipt,
      parentLsn: receipt.lsn,
    });
    await resumeParent(tx, context);
    return undefined;
  });
};

function resumedEndpoint({ operation }: StepContext): EndpointId | null {
  return typeof operation.state.resume === 'string' ? asEndpointId(operation.state.resume) : null;
}

async function resumeParent(tx: Tx, context: StepContext): Promise<void> {
  const id = resumedEndpoint(context);
  const endpoint = id && (await lockEndpoint(tx, id));
  if (endpoint) await queueStart(commandScope(context.core, tx), endpoint, wakePriority);
}

export const createBranch: Job = {
  steps: { quiesce_parent: quiesceParent, stop_parent: stopParent, copy },
  giveUp: async (tx, context) => {
    const { operation } = context;
    if (operation.branchId !== null) await updateBranch(tx, operation.branchId, { pendingState: null });
    await resumeParent(tx, context);
  },
};
