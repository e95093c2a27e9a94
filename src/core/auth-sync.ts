/**
 * Copies users from the log into a tenant's database, by whoever has its server in hand: a start before its route
 * opens, or the reconciler when something has changed. A failure is written down and never in the way of anything.
 */
import {
  deleteSchemaDrop,
  postponeSchemaDrop,
  recordUsersFailure,
  recordUsersPosition,
  recordUsersSynced,
  selectSchemaDrops,
  selectUserChanges,
  selectUsersLag,
  selectUsersTarget,
  type UsersLag,
  type UsersTarget,
} from '../db/auth-users.ts';
import { errorText } from '../lib/errors.ts';
import type { BranchId } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { ChangesAfter, UsersTable } from '../lib/model.ts';
import type { Core, Scope } from './context.ts';

export type { UsersLag };

/** What this asks of a compute driver, which knows the server by its own kind of reference. */
export interface UsersPort<Ref> {
  syncUsers(ref: Ref, table: UsersTable, changesAfter: ChangesAfter): Promise<number | null>;
  dropUsers(ref: Ref, database: string): Promise<boolean>;
}

export interface UsersPlace<Ref> {
  readonly branchId: BranchId;
  readonly ref: Ref;
}

const batchSize = 500;
const errorLengthMax = 500;
const retryMsMax = 5 * 60_000;

/** What there is to do on a branch. */
export interface UsersWork {
  readonly target: UsersTarget | undefined;
  readonly drops: readonly { readonly databaseName: string }[];
}

export async function findUsersWork(scope: Pick<Scope, 'sql'>, branchId: BranchId): Promise<UsersWork> {
  const [target, drops] = await Promise.all([
    selectUsersTarget(scope.sql, branchId),
    selectSchemaDrops(scope.sql, branchId),
  ]);
  return { target, drops };
}

/** False when something failed; the reason is on record then. */
export async function bringUsersUpToDate<Ref>(
  core: Core,
  log: Logger,
  port: UsersPort<Ref>,
  place: UsersPlace<Ref>,
  work: UsersWork,
): Promise<boolean> {
  const areDropped = await dropSchemas(core, log, port, place, work);
  const { target } = work;
  if (target === undefined) return areDropped;
  const { sql } = core.database;
  const table = {
    database: target.databaseName,
    readerName: target.roleName,
    providerProjectId: target.providerProjectId,
  };
  try {
    const position = await port.syncUsers(place.ref, table, async (after) => {
      if (after < target.syncedSeq) await recordUsersPosition(sql, target.id, after);
      const rows = await selectUserChanges(sql, target.providerProjectId, after, batchSize);
      return rows.map(({ userJson, ...row }) => ({ ...row, user: userJson }));
    });
    // Null: it fell asleep meanwhile, and the next start sees to it.
    if (position !== null) await recordUsersSynced(sql, target.id, position);
    return areDropped;
  } catch (error) {
    log.warn({ err: error, integration: target.id }, 'users could not be copied into a database');
    const waitMs = Math.min(retryMsMax, 1_000 * 2 ** Math.min(target.syncFailures, 10));
    await recordUsersFailure(sql, target.id, errorText(error).slice(0, errorLengthMax), waitMs);
    return false;
  }
}

async function dropSchemas<Ref>(
  core: Core,
  log: Logger,
  port: UsersPort<Ref>,
  { branchId, ref }: UsersPlace<Ref>,
  { drops }: UsersWork,
): Promise<boolean> {
  const { sql } = core.database;
  let allWell = true;
  for (const { databaseName } of drops) {
    try {
      if (await port.dropUsers(ref, databaseName)) await deleteSchemaDrop(sql, branchId, databaseName);
    } catch (error) {
      allWell = false;
      log.warn({ err: error, branchId, databaseName }, 'the schema of users could not be dropped');
      await postponeSchemaDrop(sql, branchId, databaseName);
    }
  }
  return allWell;
}

export function readUsersLag(scope: Pick<Scope, 'sql'>): Promise<UsersLag> {
  return selectUsersLag(scope.sql);
}
