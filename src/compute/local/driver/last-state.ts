/**
 * Reads what a server holds just before it stops, and proves that nothing changed after the reading: the next WAL
 * record is then the shutdown's.
 */

import type { ServerCatalog } from '../../../lib/model.ts';
import { lsnBytes } from '../../../lib/moments.ts';
import type { SettledServer } from '../../interface/driver.ts';
import { adminLogin, type Session, withSession } from '../../server/admin-session.ts';
import { readCatalog } from '../../server/configure.ts';
import { keepLogForHistory } from '../../server/history.ts';
import { endClientsReplication, readQuietPosition } from '../../server/logical-replication.ts';
import { readMeasures } from '../../server/measures.ts';
import { readSize } from '../../server/work.ts';
import type { HostedCompute } from '../channel/host-calls.ts';
import { addressOf } from './observation.ts';

/** Allows for a page header and alignment; any change of a role or a database writes several times as much. */
const slackBytes = 64n;

/**
 * Runs a checkpoint while clients are still served, so that the shutdown has little left to write, and reads all that
 * is recorded of a server that falls asleep. If the checkpoint fails, the shutdown does the same work, only slower.
 */
export async function settleServer(compute: HostedCompute): Promise<SettledServer> {
  return withSession(addressOf(compute), adminLogin(compute.adminSecret), async (sql) => {
    const isWrittenOut = await writeOut(sql).then(
      () => true,
      () => false,
    );
    // Sent together and answered in this order: whatever is written during the other readings counts as later.
    const [position, catalog, bytes, measures] = await Promise.all([
      readQuietPosition(sql),
      readCatalog(sql),
      readSize(sql),
      readMeasures(sql).catch(() => null),
    ]);
    return { catalog, bytes, measures, position: isWrittenOut ? position : null };
  });
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
