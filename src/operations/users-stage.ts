/** The stage of a start in which users reach the table that an application is about to read: before the route opens. */

import { bringUsersUpToDate, findUsersWork, type UsersWork } from '../core/auth-sync.ts';
import { doubtUsersSynced } from '../db/auth-users.ts';
import { delay } from '../lib/clock.ts';
import type { StepContext } from './step.ts';
import type { ComputeTarget } from './target.ts';

/** A tenant's trigger may take for ever; the application waits no longer than this for it. */
const stageMsMax = 5_000;

/** `known` is what a start has read already. */
export async function bringUsersUp(context: StepContext, target: ComputeTarget, known?: UsersWork): Promise<void> {
  const { core, driver, log } = context;
  const { branch, endpoint, ref } = target;
  if (endpoint.type === 'read_only') return;
  const work = known ?? (await findUsersWork({ sql: core.database.sql }, branch.id));
  if (isUpToDate(work, branch.catalogKept)) return;
  // Whatever becomes of this process, the follower of the log goes on until the copying has succeeded.
  if (work.target !== undefined && !branch.catalogKept) await doubtUsersSynced(core.database.sql, branch.id);
  const done = new AbortController();
  const sync = bringUsersUpToDate(core, log, driver, { branchId: branch.id, ref }, work)
    .catch((error) => log.warn({ err: error }, 'users could not be brought up to date at a start'))
    .finally(() => done.abort());
  await Promise.race([sync, delay(stageMsMax, done.signal)]);
}

/**
 * The position that counts is in the tenant's database. What was recorded of it holds as long as the server's data is
 * what it was when it fell asleep; after an accident, or a restore, the database itself is asked.
 */
function isUpToDate({ target, drops }: UsersWork, isDataKept: boolean): boolean {
  return drops.length === 0 && (target === undefined || (isDataKept && !target.isBehind));
}
