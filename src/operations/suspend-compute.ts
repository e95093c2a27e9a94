/** Puts a compute to sleep: records what owners changed by SQL, flushes everything to disk, stops the server. */
import { recordCatalog } from '../core/catalog.ts';
import { updateCatalogKept, updateLogicalSize } from '../db/branches.ts';
import { addConsumption, meterEnd, meterWritten } from '../db/consumption.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { type ComputeTarget, done, goto, type Job, type Step, type StepContext, skip } from './step.ts';
import { findCompute, isBeingRemoved, isDeleted } from './target.ts';

/** Passwords changed by SQL must work for the login that wakes it again. */
const saveCatalog: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined || isBeingRemoved(target)) return skip('the endpoint is gone');
  const seen = await context.driver.observe(target.ref);
  // From here on no client is sent there: pooled clients wait for the next start instead of losing their transactions.
  if (seen.state !== 'running' || target.endpoint.type === 'read_only') {
    return goto('stop', async (tx) => {
      await updateEndpoint(tx, target.endpoint.id, { address: null });
    });
  }
  const state = await readState(context, target);
  // Only for the accounts: what could not be read now is part of the next measurement.
  const measures = await context.driver.measure(target.ref).catch(() => null);
  return goto('stop', async (tx) => {
    if (state !== null) await recordCatalog(tx, target.branch.id, { roles: [], databases: [] }, state.catalog);
    await updateEndpoint(tx, target.endpoint.id, { address: null });
    if (state?.bytes != null) await updateLogicalSize(tx, target.branch.id, state.bytes);
    if (measures?.wal != null) {
      const written = await meterWritten(tx, new Map([[target.branch.id, measures.wal]]));
      await addConsumption(tx, written, context.core.clock.now());
    }
  });
};

/** A server that does not answer is no reason to keep a deleted compute awake: its next start reads what it holds. */
async function readState({ driver, log }: StepContext, target: ComputeTarget) {
  try {
    return { catalog: await driver.readCatalog(target.ref), bytes: await driver.observeSize(target.ref) };
  } catch (error) {
    if (!isDeleted(target)) throw error;
    log.warn({ err: error }, 'the server of a deleted compute is stopped without a last look');
    return null;
  }
}

const stop: Step = async (context) => {
  const target = await findCompute(context);
  if (target === undefined) return skip('the endpoint is gone');
  // Its counters go with it. They account for a few seconds, which is no reason to keep it awake.
  const [used] = await context.driver.sample([target.ref]).catch(() => []);
  const catalog = await context.driver.suspend(target.ref, target.endpoint.generation);
  return done(async (tx) => {
    await meterEnd(tx, target.endpoint.id, context.core.clock.now(), used?.cpuSeconds ?? null);
    if (catalog !== null) {
      await recordCatalog(tx, target.branch.id, { roles: [], databases: [] }, catalog);
      await updateCatalogKept(tx, target.branch.id, true);
    }
    const last = await selectUnfinishedForEndpoint(tx, target.endpoint.id);
    const startFollows = last?.id !== context.operation.id && last?.job === 'start_compute';
    await updateEndpoint(tx, target.endpoint.id, {
      currentState: 'idle',
      pendingState: startFollows ? 'active' : null,
      address: null,
      currentCu: null,
      reservedCu: null,
      ...(target.endpoint.currentState === 'active' ? { suspendedAt: context.core.clock.now() } : {}),
    });
  });
};

/** It may still run: the row says so until an observation proves otherwise, and a wake starts it anew. */
const giveUp: Job['giveUp'] = async (tx, { operation }) => {
  if (operation.endpointId !== null) await updateEndpoint(tx, operation.endpointId, { pendingState: null });
};

export const suspendCompute: Job = { steps: { save_catalog: saveCatalog, stop }, giveUp };

/** For a compute that sleeps by its row, which does not prove that no server is left. */
export const ensureAsleep: Job = { steps: { stop }, giveUp };
