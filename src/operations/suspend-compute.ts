/** Puts a compute to sleep: records what owners changed by SQL, flushes everything to disk, stops the server. */
import type { ComputeRef, ComputeSample, SettledServer } from '../compute/interface/driver.ts';
import { isCatalogNew, recordCatalog, selectCatalogRows } from '../core/catalog.ts';
import { updateCatalogKept, updateLogicalSize } from '../db/branches.ts';
import { meterEnd } from '../db/consumption.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { type ComputeTarget, done, goto, type Job, type Step, type StepContext, skip } from './step.ts';
import { findCompute, isBeingRemoved, isDeleted } from './target.ts';

const nothingPending = { roles: [], databases: [] };

/**
 * Passwords changed by SQL must work for the login that wakes it again. No client is sent there from the request on:
 * pooled clients wait for the next start instead of losing their transactions.
 */
const saveCatalog: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined || isBeingRemoved(target)) return skip('the endpoint is gone');
  const { endpoint, ref } = target;
  const { sql } = context.core.database;
  const [settled, used, rows] = await Promise.all([
    endpoint.type === 'read_only' ? null : settle(context, target),
    readUse(context, ref),
    // As good as those of a moment later: meanwhile nobody but this operation may say what the server holds.
    selectCatalogRows(sql, target.branch.id),
  ]);
  Object.assign(context.memory, { compute: target, used, ...(settled !== null && { settled }) });
  const isOfBranch = settled?.branchId === target.branch.id;
  const isNew = settled !== null && (!isOfBranch || isCatalogNew(rows, settled.catalog));
  // Usually whoever asked for the nap has closed the route, and owners have changed nothing: no commit to wait for.
  if (endpoint.address === null && !isNew) return goto('stop');
  return goto('stop', async (tx) => {
    await Promise.all([
      updateEndpoint(tx, endpoint.id, { address: null }),
      settled && recordCatalog(tx, settled.branchId, nothingPending, settled.catalog),
    ]);
  });
};

/** The counters go with the server. They account for a few seconds, which is no reason to keep it awake. */
async function readUse({ driver }: StepContext, ref: ComputeRef): Promise<ComputeSample | null> {
  const [used] = await driver.sample([ref]).catch(() => []);
  return used ?? null;
}

/** A server that does not answer is no reason to keep a deleted compute awake: its next start reads what it holds. */
async function settle({ driver, log }: StepContext, target: ComputeTarget): Promise<SettledServer | null> {
  try {
    return await driver.settle(target.ref);
  } catch (error) {
    if (!isDeleted(target)) throw error;
    log.warn({ err: error }, 'the server of a deleted compute is stopped without a last look');
    return null;
  }
}

const stop: Step = async (context) => {
  const { compute, settled } = context.memory;
  const target = compute ?? (await findCompute(context));
  if (target === undefined) return skip('the endpoint is gone');
  const { endpoint, ref } = target;
  // Of the server itself: a compute that is to move, or has moved, may still serve another branch than its row names.
  const branchId = settled?.branchId ?? (await context.driver.observe(ref)).branchId ?? target.branch.id;
  const used = context.memory.used ?? (await readUse(context, ref));
  const catalog = await context.driver.suspend(ref, endpoint.generation, settled);
  const now = context.core.clock.now();
  return done(async (tx) => {
    // Only for the accounts: what could not be measured is part of the next measurement.
    const wal = settled?.wal ?? null;
    const recordIdle = async () => {
      const last = await selectUnfinishedForEndpoint(tx, endpoint.id);
      const startFollows = last?.id !== context.operation.id && last?.job === 'start_compute';
      await updateEndpoint(tx, endpoint.id, {
        currentState: 'idle',
        pendingState: startFollows ? 'active' : null,
        address: null,
        currentCu: null,
        reservedCu: null,
        ...(endpoint.currentState === 'active' ? { suspendedAt: now } : {}),
      });
    };
    // Sent together. Its time is read before the row says that it is idle, which waits for an answer.
    await Promise.all([
      meterEnd(tx, endpoint.id, now, { cpuSeconds: used?.cpuSeconds ?? null, wal: wal && [branchId, wal] }),
      // What is certain and was settled is recorded already.
      catalog && catalog !== settled?.catalog && recordCatalog(tx, branchId, nothingPending, catalog),
      catalog && updateCatalogKept(tx, branchId, true),
      settled && updateLogicalSize(tx, branchId, settled.bytes),
      recordIdle(),
    ]);
  });
};

/** It may still run: the row says so until an observation proves otherwise, and a wake starts it anew. */
const giveUp: Job['giveUp'] = async (tx, { operation }) => {
  if (operation.endpointId !== null) await updateEndpoint(tx, operation.endpointId, { pendingState: null });
};

export const suspendCompute: Job = { steps: { save_catalog: saveCatalog, stop }, giveUp };

/** For a compute that sleeps by its row, which does not prove that no server is left. */
export const ensureAsleep: Job = { steps: { stop }, giveUp };
