/**
 * Turns the writes of branches off that have grown beyond their size quota, or that are to wait until the disk has room
 * (`disk-room.ts`), and on again when they have shrunk, the quota was raised, or there is room. Turned off means that
 * transactions are read-only by default, which a session can lift for itself so that it can delete. So that nobody
 * lifts it to write on, sessions of a branch that grows all the same are ended while they write.
 */
import { computeRef } from '../core/endpoint.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import { hasWritesOff } from '../core/quota.ts';
import { selectBranchInAnyState, updateLogicalSize } from '../db/branches.ts';
import type { Sql } from '../db/client.ts';
import { type ActiveCompute, type EndpointRow, selectPrimariesWithSizeQuota } from '../db/endpoints.ts';
import { actIfUntouched, isSameLife } from './recheck.ts';
import { makeReconciler, type Reconciler, type ReconcilerParts } from './reconciler.ts';

/** Growth that deleting may cause: pages of the visibility map, of catalogs, of the free space map. */
const growthBytesMax = 16 * 1024 * 1024;

export function makeSizeQuotas(): Reconciler {
  /** The smallest size that each compute was seen to serve since its writes were off. */
  const floors = new Map<string, number>();
  return makeReconciler('size-quotas', 2_000, async (parts) => {
    const primaries = await selectPrimariesWithSizeQuota(parts.core.database.sql);
    const known = new Set<string>(primaries.filter(runsWithWritesOff).map(({ id }) => id));
    for (const id of floors.keys()) if (!known.has(id)) floors.delete(id);
    return primaries.map((primary) => ({ subject: primary.id, work: () => look(parts, primary, floors) }));
  });
}

const runsWithWritesOff = ({ server }: Pick<EndpointRow, 'server'>) => server?.writesOff === true;

async function look(parts: ReconcilerParts, primary: ActiveCompute, floors: Map<string, number>): Promise<void> {
  const { core, driver } = parts;
  const { sql } = core.database;
  const bytes = await driver.observeSize(computeRef(primary));
  if (bytes === null) return;
  await updateLogicalSize(sql, primary.branchId, bytes);
  if ((await mustBeOff(sql, primary)) !== runsWithWritesOff(primary)) return changeWrites(parts, primary);
  if (!runsWithWritesOff(primary)) return;
  const floor = Math.min(bytes, floors.get(primary.id) ?? bytes);
  floors.set(primary.id, floor);
  if (bytes > floor + growthBytesMax) await endWriters(parts, primary);
}

async function mustBeOff(sql: Sql, endpoint: EndpointRow): Promise<boolean> {
  const branch = await selectBranchInAnyState(sql, endpoint.branchId);
  return branch !== undefined && hasWritesOff(endpoint, branch);
}

/** The operation itself reads what holds by then. */
async function changeWrites({ core, log }: ReconcilerParts, seen: ActiveCompute): Promise<void> {
  await actIfUntouched(core, seen, isSameLife(seen), async (scope, endpoint) => {
    const off = await mustBeOff(scope.tx, endpoint);
    if (off === runsWithWritesOff(endpoint)) return;
    log.info({ endpoint: seen.id, branch: seen.branchId, off }, 'the writes of a branch are turned off or on');
    await enqueue(scope, 'apply_config', computeKeys(endpoint));
  });
}

async function endWriters({ driver, log }: ReconcilerParts, primary: ActiveCompute): Promise<void> {
  const ended = await driver.endWriters(computeRef(primary));
  if (ended > 0) log.warn({ endpoint: primary.id, ended }, 'sessions wrote to a branch over its size quota: ended');
}
