/**
 * Reads what a server holds just before it stops, and proves that nothing changed after the reading: the next WAL
 * record is then the shutdown's.
 */

import type { ServerCatalog } from '../../../lib/model.ts';
import { lsnBytes } from '../../../lib/moments.ts';
import type { SettledServer } from '../../interface/driver.ts';
import { adminLogin, type Session, withLastSession, withSession } from '../../server/admin-session.ts';
import { readCatalog } from '../../server/configure.ts';
import { keepLogForHistory } from '../../server/history.ts';
import { endClientsReplication, readQuietPosition } from '../../server/logical-replication.ts';
import { readWrittenLog } from '../../server/measures.ts';
import { readSize } from '../../server/work.ts';
import type { HostedCompute } from '../channel/host-calls.ts';
import { addressOf } from './observation.ts';

/** Allows for a page header and alignment; any change of a role or a database writes several times as much. */
const slackBytes = 64n;

/** A shutdown writes out what so much log has changed in moments, and well within the time that it is given. */
const littleLogBytes = 32 * 1024 ** 2;

/**
 * Reads all that is recorded of a server that falls asleep. One that has much to write out does so first, while its
 * sessions go on: the shutdown then has little left. If that fails, the shutdown does the same work.
 */
export async function settleServer(compute: HostedCompute): Promise<SettledServer> {
  return withLastSession(addressOf(compute), adminLogin(compute.adminSecret), async (sql) => {
    // Sent together. The log is kept before any checkpoint, which may reuse what the history does not have yet.
    const [isKept, changedBytes, state] = await Promise.all([
      succeeds(keepLogForHistory(sql)),
      readChangedBytes(sql),
      readState(sql, compute),
    ]);
    if (!isKept) return { ...state, position: null };
    if (changedBytes <= littleLogBytes) return state;
    const isWrittenOut = await succeeds(sql`CHECKPOINT`);
    const later = await readState(sql, compute);
    return isWrittenOut ? later : { ...later, position: null };
  });
}

const succeeds = (work: PromiseLike<unknown>) =>
  work.then(
    () => true,
    () => false,
  );

/** Answered in this order: whatever is written during the other readings counts as later than the position. */
async function readState(sql: Session, { branchId }: HostedCompute): Promise<SettledServer> {
  const [position, catalog, bytes, wal] = await Promise.all([
    readQuietPosition(sql),
    readCatalog(sql),
    readSize(sql),
    readWrittenLog(sql).catch(() => null),
  ]);
  return { branchId, position, catalog, bytes, wal };
}

/** How much log a checkpoint would have to account for. */
async function readChangedBytes(sql: Session): Promise<number> {
  const [found] = await sql<{ bytes: number }[]>`
    SELECT CASE WHEN pg_is_in_recovery() THEN 0
      ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 END AS bytes FROM pg_control_checkpoint()`;
  return found?.bytes ?? 0;
}

/** For a server that was not settled, or where clients replicate, which would hold up its shutdown. */
export async function checkpointAndRead(
  compute: HostedCompute,
): Promise<{ position: string; catalog: ServerCatalog } | null> {
  return withSession(addressOf(compute), adminLogin(compute.adminSecret), async (sql) => {
    if (!compute.readOnly) await writeOut(sql);
    else await sql`CHECKPOINT`;
    await endClientsReplication(sql);
    if (compute.readOnly) return null;
    // The position is read before the catalog, so anything written during that reading counts as later.
    const [row] = await sql<{ position: string }[]>`SELECT pg_current_wal_insert_lsn()::text AS position`;
    return row === undefined ? null : { position: row.position, catalog: await readCatalog(sql) };
  }).catch(() => null);
}

async function writeOut(sql: Session): Promise<void> {
  // Before the checkpoint, which may reuse log that the history does not have yet.
  await keepLogForHistory(sql);
  await sql`CHECKPOINT`;
}

/** `end` is the WAL position of the shutdown record. */
export function nothingWritten(since: string, end: string): boolean {
  const distance = lsnBytes(end) - lsnBytes(since);
  return distance >= 0n && distance < slackBytes;
}
