/**
 * Puts a branch that was restored from a snapshot in the place of another one. Data stays where it is; the computes of
 * the other branch are stopped and moved, and the next start serves the restored data under the same host. A failure
 * before that changes nothing.
 */
import { commandScope } from '../core/context.ts';
import { freeName } from '../core/snapshot-restore.ts';
import { moveAuthIntegrations, selectUsersDatabaseNames, updateUsersDatabase } from '../db/auth-integrations.ts';
import {
  type BranchRow,
  isBranchNameTaken,
  selectBranchInAnyState,
  selectChildren,
  updateBranch,
} from '../db/branches.ts';
import type { Tx } from '../db/client.ts';
import {
  type EndpointRow,
  moveEndpoints,
  selectEndpoints,
  updateEndpoint,
  updateReplication,
} from '../db/endpoints.ts';
import { moveKeySets } from '../db/key-sets.ts';
import { cancelFollowers, selectUnfinishedForEndpoint } from '../db/operations.ts';
import { moveSchedule } from '../db/snapshot-schedules.ts';
import { asBranchId, type BranchId } from '../lib/ids.ts';
import { nothingToRecord, readWhatRuns } from './compute-steps.ts';
import { abandon, done, goto, type Job, type Step, type StepContext, type Write } from './step.ts';
import { findBranch, findCompute } from './target.ts';

interface Pair {
  readonly branch: BranchRow;
  readonly target: BranchRow;
}

function targetOf({ operation }: StepContext): BranchId {
  const { target } = operation.state;
  if (typeof target !== 'string') throw new Error('BUG: the operation has no branch to replace');
  return asBranchId(target);
}

async function findPair(context: StepContext): Promise<Pair | undefined> {
  const restored = await findBranch(context);
  const target = await selectBranchInAnyState(context.core.database.sql, targetOf(context));
  if (restored === undefined || target === undefined || target.deletingAt !== null) return undefined;
  return { branch: restored.branch, target };
}

/** All of the branch that is replaced, and the primary of the restored one, if another takes its place. */
async function findMoving(context: StepContext, { branch, target }: Pair): Promise<EndpointRow[]> {
  const { sql } = context.core.database;
  const moving = await selectEndpoints(sql, branch.projectId, target.id);
  const own = await selectEndpoints(sql, branch.projectId, branch.id);
  const isReplaced = moving.some(({ type }) => type === 'read_write');
  return isReplaced ? [...moving, ...own.filter(({ type }) => type === 'read_write')] : moving;
}

/** The routes are closed first: pooled clients start nothing new here, and wait for the restored data. */
const close: Step = async (context) => {
  const pair = await findPair(context);
  if (pair === undefined) return abandon('the branch to replace is gone');
  if (pair.branch.receipt === null) return abandon('the snapshot could not be restored');
  const moving = await findMoving(context, pair);
  return goto('stop', async (tx) => {
    for (const { id, address } of moving) if (address !== null) await updateEndpoint(tx, id, { address: null });
  });
};

const stop: Step = async (context) => {
  const pair = await findPair(context);
  if (pair === undefined) return abandon('the branch to replace is gone');
  const moving = await findMoving(context, pair);
  const readings: Write[] = [];
  for (const { id } of moving) readings.push(await stopCompute(context, id));
  return done(async (tx) => {
    for (const record of readings) await record(tx);
    await recordStopped(tx, moving);
    await recordFinalized(tx, context, pair);
  });
};

/** What owners changed by SQL belongs to the branch that the compute leaves, and so does the data of a replica. */
async function stopCompute(context: StepContext, id: EndpointRow['id']): Promise<Write> {
  const compute = await findCompute(context, id);
  if (compute === undefined) return nothingToRecord;
  const { ref, endpoint } = compute;
  const record = await readWhatRuns(context, compute);
  await context.driver.suspend(ref, endpoint.generation);
  if (endpoint.type === 'read_only') await context.driver.removeCompute(ref);
  return record;
}

async function recordStopped(tx: Tx, endpoints: readonly EndpointRow[]): Promise<void> {
  for (const { id, type } of endpoints) {
    const last = await selectUnfinishedForEndpoint(tx, id);
    const pendingState = last?.job === 'start_compute' ? 'active' : null;
    await updateEndpoint(tx, id, { currentState: 'idle', pendingState, address: null });
    if (type === 'read_only') await updateReplication(tx, id, null);
  }
}

async function recordFinalized(tx: Tx, context: StepContext, { branch, target }: Pair): Promise<void> {
  const scope = commandScope(context.core, tx);
  const { kept_name: wanted } = context.operation.state;
  const isFree = typeof wanted === 'string' && !(await isBranchNameTaken(tx, branch.projectId, wanted));
  const keptName = isFree ? wanted : await freeName(scope, branch.projectId, `${target.name}_old`);
  const hasChildren = (await selectChildren(tx, branch.id)).length > 0;
  const usersIn = await selectUsersDatabaseNames(tx, target.id);
  const ready = { currentState: 'ready', pendingState: null } as const;
  await updateBranch(tx, target.id, { ...ready, name: keptName, isDefault: false });
  await updateBranch(tx, branch.id, {
    ...ready,
    name: target.name,
    isDefault: target.isDefault || branch.isDefault,
    // A branch that expires has no children.
    ...(!hasChildren && { expiresAt: target.expiresAt }),
    lastResetAt: context.core.clock.now(),
    restoreStatus: 'finalized',
  });
  await moveEndpoints(tx, target.id, branch.id);
  await moveSchedule(tx, target.id, branch.id);
  await moveKeySets(tx, target.id, branch.id);
  await moveAuthIntegrations(tx, target.id, branch.id);
  await updateUsersDatabase(tx, branch.id, usersIn);
}

/** Both branches keep what they have. Computes are started again only if they were stopped. */
const giveUp: Job['giveUp'] = async (tx, context) => {
  const { operation } = context;
  const target = await selectBranchInAnyState(tx, targetOf(context));
  const branch = operation.branchId === null ? undefined : await selectBranchInAnyState(tx, operation.branchId);
  if (target !== undefined) await updateBranch(tx, target.id, { currentState: 'ready', pendingState: null });
  if (branch !== undefined) {
    const currentState = branch.receipt === null ? 'init' : 'ready';
    await updateBranch(tx, branch.id, { currentState, pendingState: null });
  }
  if (operation.step === 'close') await cancelFollowers(tx, operation.id);
};

export const finalizeRestore: Job = { steps: { close, stop }, giveUp };
