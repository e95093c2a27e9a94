/**
 * Restores a branch: copies the source, or a moment of its past, under a name of its own while the branch keeps serving
 * its data, then stops its computes and exchanges its data for the copy. A failure before that exchange changes
 * nothing. The computes that were awake are started by the operations that follow.
 */
import type { SourceState } from '../compute/interface/driver.ts';
import { recordCatalog } from '../core/catalog.ts';
import { type CatalogSnapshot, putCatalogSnapshot, snapshotOf, takeCatalogSnapshot } from '../core/catalog-snapshot.ts';
import { commandScope } from '../core/context.ts';
import { branchKey, enqueue } from '../core/operation.ts';
import { selectUsersDatabaseNames, updateUsersDatabase } from '../db/auth-integrations.ts';
import {
  copyLogicalSize,
  moveChildren,
  selectBranchInAnyState,
  updateBranch,
  updateCatalogKept,
  updateLogicalSize,
  updateReplicationSlots,
} from '../db/branches.ts';
import type { JsonValue, Tx } from '../db/client.ts';
import { moveMeteredWal } from '../db/consumption.ts';
import { selectEndpoints, selectReadWriteEndpoint, updateEndpoint } from '../db/endpoints.ts';
import { updateHistory } from '../db/histories.ts';
import { cancelFollowers, selectUnfinishedForEndpoint } from '../db/operations.ts';
import { recallPasswords } from '../db/roles.ts';
import { asBranchId, asEndpointId, type BranchId } from '../lib/ids.ts';
import { nothingToRecord, readWhatRuns } from './compute-steps.ts';
import { copyPast, type Past, pastOf, readSource } from './copy-source.ts';
import {
  abandon,
  abandonIfHopeless,
  done,
  goto,
  type Job,
  nothingToUndo,
  type Step,
  type StepContext,
  skip,
  type Write,
  wait,
} from './step.ts';
import { adminSecretOf, type BranchTarget, findBranch, findCompute, findProject, tenantRef } from './target.ts';

const sourceStartsMs = 50;

const readSourceState: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined) return skip('the branch is gone');
  if (pastOf(context) !== null) return goto('copy');
  const sourceId = sourceOf(context);
  const source = await selectBranchInAnyState(context.core.database.sql, sourceId);
  if (source?.currentState !== 'ready') return abandon('the source has no data to restore from');
  const seen = await readSource(context, sourceId);
  if (seen === 'starting') return wait(sourceStartsMs);
  return goto('copy', async (tx) => {
    if (seen !== 'asleep') {
      await recordCatalog(tx, sourceId, { roles: [], databases: [] }, seen.catalog);
      if (seen.bytes !== null) await updateLogicalSize(tx, sourceId, seen.bytes);
    }
    return { catalog: await takeCatalogSnapshot(tx, sourceId), copied_at: context.core.clock.now().toISOString() };
  });
};

const copy: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined) return skip('the branch is gone');
  const [past, { pgVersion }] = [pastOf(context), target.project];
  const staging = { ...target.ref, branchId: stagingOf(context), pgVersion };
  return abandonIfHopeless(async () => {
    const copying =
      past === null
        ? context.driver.createBranch({ ...staging, source: { kind: 'branch', branchId: sourceOf(context) } })
        : copyPast(context, target, staging.branchId, past);
    const [{ receipt, source }] = await Promise.all([copying, writeOut(context, target).catch(() => undefined)]);
    if (target.project.settings.enable_logical_replication) {
      await context.driver.detachBranch({ ...staging, adminSecret: adminSecretOf(context, target.project) });
    }
    return goto('stop', async (tx) => {
      // The routes are closed first: pooled clients start nothing new here, and wait for the restored data.
      for (const { id, address } of await selectEndpoints(tx, target.project.id, target.branch.id)) {
        if (address !== null) await updateEndpoint(tx, id, { address: null });
      }
      const found = past === null || source === null ? {} : await describePast(tx, target, past, source);
      return { receipt: { ...receipt }, ...found };
    });
  });
};

/** Beside the copy: clients wait for the stop, which then has little left to write. What fails here, the stop does. */
async function writeOut(context: StepContext, { branch }: BranchTarget): Promise<void> {
  const endpoint = await selectReadWriteEndpoint(context.core.database.sql, branch.id);
  const compute = endpoint && (await findCompute(context, endpoint.id));
  if (compute !== undefined) await context.driver.settle(compute.ref);
}

/** What `read_source` finds out about a head, of a moment of the past. */
async function describePast(tx: Tx, { branch }: BranchTarget, { moment }: Past, source: SourceState) {
  return {
    catalog: await snapshotOf(tx, branch.id, source.catalog),
    copied_at: moment.kind === 'time' ? moment.at : null,
    bytes: source.bytes,
  };
}

/** What owners changed by SQL belongs to the data that is put aside, so it is read before that happens. */
const stop: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined) return skip('the branch is gone');
  const endpoints = await selectEndpoints(context.core.database.sql, target.project.id, target.branch.id);
  const readings: Write[] = [];
  for (const { id } of endpoints) readings.push(await stopCompute(context, id));
  return goto('exchange', async (tx) => {
    for (const record of readings) await record(tx);
    for (const { id } of endpoints) {
      const last = await selectUnfinishedForEndpoint(tx, id);
      const pendingState = last?.job === 'start_compute' ? 'active' : null;
      await updateEndpoint(tx, id, { currentState: 'idle', pendingState, address: null });
    }
  });
};

async function stopCompute(context: StepContext, id: Parameters<typeof findCompute>[1]): Promise<Write> {
  const compute = await findCompute(context, id);
  if (compute === undefined) return nothingToRecord;
  const record = await readWhatRuns(context, compute);
  await context.driver.suspend(compute.ref, compute.endpoint.generation);
  return record;
}

const exchange: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined) return skip('the branch is gone');
  const by = { stagingId: stagingOf(context), keepAs: backupOf(context) };
  await context.driver.replaceBranch(target.ref, by);
  return done(async (tx) => {
    await recordRestored(tx, context, target);
  });
};

async function recordRestored(tx: Tx, context: StepContext, { branch }: BranchTarget): Promise<void> {
  const { catalog, receipt, copied_at: copiedAt, bytes } = context.operation.state;
  const backup = backupOf(context);
  const now = context.core.clock.now();
  await moveMeteredWal(tx, branch.id, backup);
  const usersIn = await selectUsersDatabaseNames(tx, branch.id);
  await putCatalogSnapshot(tx, branch.id, catalog as CatalogSnapshot, backup);
  await recallPasswords(tx, branch.projectId, branch.id);
  await updateUsersDatabase(tx, branch.id, usersIn);
  for (const id of [branch.id, ...(backup === null ? [] : [backup])]) await updateCatalogKept(tx, id, false);
  if (backup !== null) {
    await updateBranch(tx, backup, { currentState: 'ready', pendingState: null, receipt: branch.receipt });
    await copyLogicalSize(tx, branch.id, backup);
    await updateHistory(tx, backup, branch.history);
  }
  await updateBranch(tx, branch.id, {
    currentState: 'ready',
    pendingState: null,
    lastResetAt: now,
    initSource: 'parent-data',
    receipt: receipt as object,
    ...(branch.parentId !== null && {
      parentLsn: lsnOf(receipt),
      parentTimestamp: typeof copiedAt === 'string' ? new Date(copiedAt) : null,
    }),
  });
  if (pastOf(context) === null) await copyLogicalSize(tx, sourceOf(context), branch.id);
  else if (typeof bytes === 'number') await updateLogicalSize(tx, branch.id, bytes);
  await updateHistory(tx, branch.id, null);
  // Neither the copy nor the data that was put aside has slots.
  await updateReplicationSlots(tx, branch.id, null);
}

function lsnOf(receipt: JsonValue | undefined): string | null {
  const lsn = typeof receipt === 'object' && receipt !== null && 'lsn' in receipt ? receipt.lsn : null;
  return typeof lsn === 'string' ? lsn : null;
}

const sourceOf = (context: StepContext) => branchIn(context, 'source');
const stagingOf = (context: StepContext) => branchIn(context, 'staging');

function branchIn({ operation }: StepContext, name: string): BranchId {
  const id = operation.state[name];
  if (typeof id !== 'string') throw new Error(`BUG: the operation has no ${name}`);
  return asBranchId(id);
}

function backupOf({ operation }: StepContext): BranchId | null {
  const { backup } = operation.state;
  return typeof backup === 'string' ? asBranchId(backup) : null;
}

/** The branch keeps its data. Its computes are started again only if they were stopped. */
const giveUp: Job['giveUp'] = async (tx, context) => {
  const { operation, core } = context;
  const { branchId, projectId } = operation;
  if (branchId === null) return;
  const backup = backupOf(context);
  if (backup !== null) {
    await moveChildren(tx, backup, branchId);
    await updateBranch(tx, backup, { currentState: 'init', pendingState: null });
  }
  const { parent } = operation.state;
  const parentId = typeof parent === 'string' ? asBranchId(parent) : null;
  await updateBranch(tx, branchId, { currentState: 'ready', pendingState: null, parentId });
  if (['read_source', 'copy'].includes(operation.step)) await cancelFollowers(tx, operation.id);
  const keys = { projectId, branchId, exclusive: [branchKey(branchId)] };
  await enqueue(commandScope(core, tx), 'discard_copy', { ...keys, state: { staging: stagingOf(context) } });
};

export const restoreBranch: Job = { steps: { read_source: readSourceState, copy, stop, exchange }, giveUp };

const discard: Step = async (context) => {
  const project = await findProject(context);
  if (project === undefined) return skip('the project is gone');
  const ref = { ...tenantRef(project), branchId: stagingOf(context) };
  const { endpoint } = context.operation.state;
  if (typeof endpoint === 'string') await context.driver.removeCompute({ ...ref, endpointId: asEndpointId(endpoint) });
  await context.driver.removeBranch(ref);
  return done();
};

/** Removes the copy of an operation that was given up, and the server that it may have started on it. */
export const discardCopy: Job = { steps: { discard }, giveUp: nothingToUndo };
