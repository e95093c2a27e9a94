/**
 * Copies users from the log into a tenant's `users_sync`: a start does so before its route opens, and the reconciler
 * when something has changed. A failure is recorded and blocks nothing else.
 */

import type { BranchRow } from '../db/branches.ts';
import type { EndpointRow } from '../db/endpoints.ts';
import {
  deleteSchemaDrop,
  doubtUsersSynced,
  postponeSchemaDrop,
  recordUsersSynced,
  recordUsersSyncFailure,
  recordUsersSyncPosition,
  selectSchemaDrops,
  selectUserChanges,
  selectUsersSyncLag,
  selectUsersSyncTarget,
  type UsersSyncLag,
  type UsersSyncTarget,
} from '../db/users-sync.ts';
import { delay } from '../lib/clock.ts';
import { errorText } from '../lib/errors.ts';
import type { BranchId } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { ChangesAfter, UsersTable } from '../lib/users-sync.ts';
import type { Core, Scope } from './context.ts';

export type { UsersSyncLag };

/** What the compute driver does with the table; it knows the server by its own kind of reference. */
interface UsersSyncDriver<Ref> {
  syncUsers(ref: Ref, table: UsersTable, changesAfter: ChangesAfter): Promise<number | null>;
  dropUsers(ref: Ref, database: string): Promise<boolean>;
}

export interface UsersSyncParts<Ref> {
  readonly core: Core;
  readonly driver: UsersSyncDriver<Ref>;
  readonly log: Logger;
}

const batchSize = 500;
const errorLengthMax = 500;
const retryMsMax = 5 * 60_000;
/** A tenant's trigger may take forever; a start waits no longer than this for it. */
const beforeRouteMsMax = 5_000;

/** What there is to do on a branch. */
export interface UsersSyncWork {
  readonly target: UsersSyncTarget | undefined;
  readonly drops: readonly { readonly databaseName: string }[];
}

export async function findUsersSyncWork(scope: Pick<Scope, 'sql'>, branchId: BranchId): Promise<UsersSyncWork> {
  const [target, drops] = await Promise.all([
    selectUsersSyncTarget(scope.sql, branchId),
    selectSchemaDrops(scope.sql, branchId),
  ]);
  return { target, drops };
}

/**
 * Brings users into the table that an application is about to read. `known` is what a start has read already. The
 * reconciler continues what is not done in time.
 */
export async function syncUsersBeforeRoute<Ref>(
  parts: UsersSyncParts<Ref>,
  target: {
    readonly branch: Pick<BranchRow, 'id' | 'catalogKept'>;
    readonly endpoint: Pick<EndpointRow, 'type'>;
    readonly ref: Ref;
  },
  known?: UsersSyncWork,
): Promise<void> {
  const { branch, endpoint, ref } = target;
  if (endpoint.type === 'read_only') return;
  const { sql } = parts.core.database;
  const work = known ?? (await findUsersSyncWork(parts.core.database, branch.id));
  if (areUsersUpToDate(work, branch.catalogKept)) return;
  // Even if this process dies, the reconciler goes on until the copying has succeeded.
  if (work.target !== undefined && !branch.catalogKept) await doubtUsersSynced(sql, branch.id);
  const done = new AbortController();
  const sync = carryOutUsersSync(parts, branch.id, ref, work)
    .catch((error) => parts.log.warn({ err: error }, 'users could not be brought up to date at a start'))
    .finally(() => done.abort());
  await Promise.race([sync, delay(beforeRouteMsMax, done.signal)]);
}

/**
 * The authoritative position is in the tenant's database. The recorded one holds as long as the data is what it was
 * when the server fell asleep; after a crash or a restore, the database itself is asked.
 */
export function areUsersUpToDate({ target, drops }: UsersSyncWork, isDataKept: boolean): boolean {
  return drops.length === 0 && (target === undefined || (isDataKept && !target.isBehind));
}

/** Records the reason of a failure, and when to try again. */
export async function carryOutUsersSync<Ref>(
  parts: UsersSyncParts<Ref>,
  branchId: BranchId,
  ref: Ref,
  { drops, target }: UsersSyncWork,
): Promise<void> {
  for (const { databaseName } of drops) await dropSchema(parts, branchId, ref, databaseName);
  if (target !== undefined) await copyUsers(parts, ref, target);
}

async function dropSchema<Ref>(
  { core, driver, log }: UsersSyncParts<Ref>,
  branchId: BranchId,
  ref: Ref,
  databaseName: string,
): Promise<void> {
  const { sql } = core.database;
  try {
    if (await driver.dropUsers(ref, databaseName)) await deleteSchemaDrop(sql, branchId, databaseName);
  } catch (error) {
    log.warn({ err: error, branchId, databaseName }, 'the schema of users could not be dropped');
    await postponeSchemaDrop(sql, branchId, databaseName);
  }
}

async function copyUsers<Ref>(
  { core, driver, log }: UsersSyncParts<Ref>,
  ref: Ref,
  target: UsersSyncTarget,
): Promise<void> {
  const { sql } = core.database;
  const { providerProjectId } = target;
  const table = { database: target.databaseName, readerName: target.roleName, providerProjectId };
  try {
    const position = await driver.syncUsers(ref, table, async (after) => {
      if (after < target.syncedSeq) await recordUsersSyncPosition(sql, target.id, after);
      return selectUserChanges(sql, providerProjectId, after, batchSize);
    });
    // Null: the compute fell asleep meanwhile, and its next start does the rest.
    if (position !== null) await recordUsersSynced(sql, target.id, position);
  } catch (error) {
    log.warn({ err: error, integration: target.id }, 'users could not be copied into a database');
    const waitMs = Math.min(retryMsMax, 1_000 * 2 ** Math.min(target.syncFailures, 10));
    await recordUsersSyncFailure(sql, target.id, errorText(error).slice(0, errorLengthMax), waitMs);
  }
}

export function readUsersSyncLag(scope: Pick<Scope, 'sql'>): Promise<UsersSyncLag> {
  return selectUsersSyncLag(scope.sql);
}
