/**
 * Keeps tenants from filling the disk that Catnap itself works on. While room is low, the writes of every compute are
 * off, as those of a branch over its size quota are. When half of what was kept back is gone too, sessions that write
 * all the same are ended, and a compute on which they come again is suspended and held until there is room. Nothing
 * here depends on the system database being able to write: it is on the same disk.
 */
import type { RoomObservation } from '../compute/interface/measures.ts';
import { computeRef, queueSuspend } from '../core/endpoint.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import { type ActiveCompute, selectActiveComputes, selectDiskGuarded, updateDiskGuard } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { errorText } from '../lib/errors.ts';
import type { EndpointId } from '../lib/ids.ts';
import { actIfStill, isSameLife } from './recheck.ts';
import type { Reconciler, ReconcilerParts } from './reconciler.ts';

/** Short: a fast disk takes a gigabyte in a second. To ask how full a disk is costs next to nothing. */
const everyMs = 250;
/** Nobody writes much while all sleeps. */
const restMs = 5_000;
/** The first time, a session may have begun to write before writes were off. */
const strikesMax = 2;
/** Of what was kept back: enough to delete a million rows from a disk of 20 GB and more. */
const logShareMax = 1 / 8;

interface Memory {
  /** As far as is known, no compute is held to anything. */
  isQuiet: boolean;
  level: RoomObservation['level'];
  /** The primaries that were awake when the system database last told. */
  primaries: readonly ActiveCompute[];
  /** How often sessions of a compute were found writing. */
  readonly strikes: Map<EndpointId, number>;
  /** How far the log of a compute was when room became critical. */
  readonly logs: Map<EndpointId, number>;
  /** What the log of a compute may grow by from then on. */
  logBytesMax: number;
}

export function makeDiskRoom(): Reconciler {
  const counts = { strikes: new Map(), logs: new Map(), logBytesMax: 0 };
  const memory: Memory = { isQuiet: false, level: 'enough', primaries: [], ...counts };
  const turn = async (parts: ReconcilerParts) => {
    const room = await parts.driver.observeRoom();
    if (room === null) return;
    memory.logBytesMax = room.lowBytes * logShareMax;
    tellOfChange(parts, memory, room);
    if (room.level === 'enough') return release(parts, memory);
    memory.isQuiet = false;
    await readPrimaries(parts, memory);
    for (const primary of memory.primaries) await guard(parts, memory, primary);
  };
  return { name: 'disk-room', everyMs, restMs, turn };
}

function tellOfChange({ log }: ReconcilerParts, memory: Memory, { level, freeBytes, lowBytes }: RoomObservation) {
  if (level === memory.level) return;
  memory.level = level;
  const facts = { level, freeBytes, lowBytes };
  if (level === 'enough') log.warn(facts, 'the disk has room again: computes may write');
  else
    log.error(facts, 'the disk is nearly full: the writes of all computes are off; catnap storage status tells more');
}

/** On a full disk the system database may fail; who was awake a moment ago is known then. */
async function readPrimaries({ core, log }: ReconcilerParts, memory: Memory): Promise<void> {
  try {
    const awake = await selectActiveComputes(core.database.sql);
    memory.primaries = awake.filter(({ type }) => type === 'read_write');
  } catch (error) {
    log.warn({ reason: errorText(error) }, 'the system database does not tell which computes are awake');
  }
}

/** Never rejects: one compute must not keep the others from being looked at. */
async function guard(parts: ReconcilerParts, memory: Memory, primary: ActiveCompute): Promise<void> {
  const { driver, log } = parts;
  const subject = { endpoint: primary.id, project: primary.projectId };
  if (primary.diskGuard === null) {
    await turnWritesOff(parts, primary).catch((error: unknown) => {
      log.error({ ...subject, reason: errorText(error) }, 'the writes of a compute could not be turned off');
    });
  }
  if (memory.level !== 'critical') return;
  if (!(await isStruckOut(parts, memory, primary)) && !(await isLoggingOn(parts, memory, primary))) return;
  await hold(parts, primary).catch(async (error: unknown) => {
    log.error({ ...subject, reason: errorText(error) }, 'a compute that fills the disk is stopped without a record');
    await driver.suspend(computeRef(primary), primary.generation).catch(() => null);
  });
}

async function isStruckOut({ driver, log }: ReconcilerParts, memory: Memory, primary: ActiveCompute): Promise<boolean> {
  const ended = await driver.endWriters(computeRef(primary)).catch(() => 0);
  if (ended === 0) return false;
  const strikes = (memory.strikes.get(primary.id) ?? 0) + 1;
  memory.strikes.set(primary.id, strikes);
  log.warn({ endpoint: primary.id, ended, strikes }, 'sessions wrote although the disk is full: ended');
  return strikes >= strikesMax;
}

/** Some statements write to the log alone, in read-only transactions too (pg_logical_emit_message). */
async function isLoggingOn({ driver }: ReconcilerParts, memory: Memory, primary: ActiveCompute): Promise<boolean> {
  const measures = await driver.measure(computeRef(primary)).catch(() => null);
  const position = measures?.wal?.position;
  if (position === undefined) return false;
  const begin = memory.logs.get(primary.id) ?? position;
  memory.logs.set(primary.id, begin);
  return position - begin > memory.logBytesMax;
}

async function turnWritesOff({ core }: ReconcilerParts, primary: ActiveCompute): Promise<void> {
  await actIfStill(core, primary, isSameLife(primary), async (scope, endpoint) => {
    if (endpoint.diskGuard !== null) return;
    await updateDiskGuard(scope.tx, endpoint.id, 'read_only');
    // What is under way may have read the row before; the reconciler of size quotas compares again.
    if ((await selectUnfinishedForEndpoint(scope.tx, endpoint.id)) === undefined) {
      await enqueue(scope, 'apply_config', computeKeys(endpoint));
    }
  });
}

async function hold({ core, log }: ReconcilerParts, primary: ActiveCompute): Promise<void> {
  await actIfStill(core, primary, isSameLife(primary), async (scope, endpoint) => {
    if (endpoint.diskGuard === 'held') return;
    log.error({ endpoint: endpoint.id, project: endpoint.projectId }, 'a compute fills the disk: it is suspended');
    await updateDiskGuard(scope.tx, endpoint.id, 'held');
    await queueSuspend(scope, endpoint);
  });
}

/** Servers that run get their writes back from the reconciler of size quotas, held ones start with the next client. */
async function release({ core }: ReconcilerParts, memory: Memory): Promise<void> {
  memory.strikes.clear();
  memory.logs.clear();
  if (memory.isQuiet) return;
  for (const { id } of await selectDiskGuarded(core.database.sql)) await updateDiskGuard(core.database.sql, id, null);
  memory.isQuiet = true;
}
