/** Brings a compute up and opens its route. The API's start, a wake, a restart and recovery all use this job. */

import { type PendingCatalog, selectPendingCatalog } from '../core/catalog.ts';
import { areUsersUpToDate, findUsersSyncWork, syncUsersBeforeRoute } from '../core/users-sync.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import { delay } from '../lib/clock.ts';
import {
  applyCatalogIfPossible,
  bringUpSteps,
  failFrom,
  nothingToRecord,
  observeStarted,
  recordUp,
  recordUpAtOnce,
  startedGeneration,
} from './compute-steps.ts';
import {
  type ComputeTarget,
  done,
  type Job,
  type StartWork,
  type Step,
  type StepContext,
  skip,
  type Write,
} from './step.ts';
import { findStartingCompute, goneOrMoved } from './target.ts';

const bringUp = bringUpSteps('open_route');
/** The host's work before it spawns the server needs the CPU more. */
const readAfterMs = 10;

/**
 * After a nap the server holds what was recorded when it fell asleep. Only when that is uncertain, as after a crash, or
 * something is pending, does Catnap open a session before the client gets its own.
 */
async function bringCatalogUpToDate(
  context: StepContext,
  target: ComputeTarget,
  pending: PendingCatalog,
): Promise<Write> {
  if (hasNothingToApply(target, pending)) return nothingToRecord;
  return applyCatalogIfPossible(context, target, pending);
}

/**
 * The work to do before the route opens is read while the server starts. Later changes are applied by their own
 * operations after this one, or by the reconciler of users.
 */
const spawnAndRead: Step = async (context) => {
  const target = await findStartingCompute(context);
  if (target === undefined) return skip(goneOrMoved);
  const reading = delay(readAfterMs)
    .then(() => readWork(context, target))
    .then((work) => expectClientsIfUsual(context, target, work));
  const [result, work] = await Promise.all([bringUp.spawn(context), reading]);
  context.memory.work = work;
  return result;
};

/** Logins may begin before the route opens, but not before changes that they could depend on, or be in the way of. */
function expectClientsIfUsual(context: StepContext, target: ComputeTarget, work: StartWork): StartWork {
  const { ref, branch, endpoint } = target;
  const isUsual = endpoint.type === 'read_write' && hasNothingToApply(target, work.catalog);
  if (isUsual && areUsersUpToDate(work.users, branch.catalogKept)) {
    context.driver.expectClients(ref, startedGeneration(context)).catch(() => {});
  }
  return work;
}

const hasNothingToApply = ({ branch }: ComputeTarget, pending: PendingCatalog) =>
  branch.catalogKept && pending.roles.length === 0 && pending.databases.length === 0;

async function readWork({ core }: StepContext, { branch }: ComputeTarget): Promise<StartWork> {
  const { sql } = core.database;
  const [catalog, users] = await Promise.all([
    selectPendingCatalog(sql, branch.id),
    findUsersSyncWork({ sql }, branch.id),
  ]);
  return { catalog, users };
}

const openRoute: Step = async (context) => {
  const target = await findStartingCompute(context);
  if (target === undefined) return skip(goneOrMoved);
  const { catalog, users } = context.memory.work ?? (await readWork(context, target));
  const recordCatalog = await bringCatalogUpToDate(context, target, catalog).catch((error: unknown) =>
    failFrom('fence', context, target, error),
  );
  await syncUsersBeforeRoute(context, target, users);
  const seen = await observeStarted(context, target);
  const open = recordUp(context, target, seen);
  const write: Write = async (tx) => {
    await recordCatalog(tx);
    return open(tx);
  };
  const isUsual = recordCatalog === nothingToRecord;
  return done(write, null, isUsual ? recordUpAtOnce(context, target, seen) : null);
};

export const startCompute: Job = {
  steps: { ...bringUp, spawn: spawnAndRead, open_route: openRoute },
  /** Whatever may still run without a route is found and stopped by the stray-computes reconciler. */
  giveUp: async (tx, { operation }) => {
    if (operation.endpointId === null) return;
    const asleep = { currentState: 'idle', pendingState: null, address: null, reservedCu: null } as const;
    await updateEndpoint(tx, operation.endpointId, asleep);
  },
};
