/**
 * Reads what a server holds just before it stops, and proves that nothing changed after the reading: the next WAL
 * record is then the shutdown's.
 */

import type { ServerCatalog } from '../../../lib/model.ts';
import { lsnBytes } from '../../../lib/moments.ts';
import { adminLogin, withSession } from '../../server/admin-session.ts';
import { readCatalog } from '../../server/configure.ts';
import { keepLogForHistory } from '../../server/history.ts';
import { endClientsReplication } from '../../server/logical-replication.ts';
import type { HostedCompute } from '../channel/host-calls.ts';

/** Allows for a page header and alignment; any change of a role or a database writes several times as much. */
const slackBytes = 64n;

/**
 * Runs a checkpoint while clients are still served, so that the shutdown has little left to write, and reads the
 * catalog. If the checkpoint fails, the shutdown does the same work, only slower.
 */
export async function checkpointAndRead(
  compute: HostedCompute,
): Promise<{ lsn: string; catalog: ServerCatalog } | null> {
  const address = { kind: 'unix', path: compute.socketPath } as const;
  return withSession(address, adminLogin(compute.adminSecret), async (sql) => {
    // Before the checkpoint, which may reuse log that the history does not have yet.
    if (!compute.readOnly) await keepLogForHistory(sql);
    await sql`CHECKPOINT`;
    await endClientsReplication(sql);
    if (compute.readOnly) return null;
    // The position is read before the catalog, so anything written during that reading counts as later.
    const [row] = await sql<{ lsn: string }[]>`SELECT pg_current_wal_insert_lsn()::text AS lsn`;
    return row === undefined ? null : { lsn: row.lsn, catalog: await readCatalog(sql) };
  }).catch(() => null);
}

/** `end` is the WAL position of the shutdown record. */
export function nothingWritten(since: string, end: string): boolean {
  const distance = lsnBytes(end) - lsnBytes(since);
  return distance >= 0n && distance < slackBytes;
}
