/**
 * What a server that is about to stop holds, and the proof that nothing has changed since it was read: the next record
 * in its WAL is then that of the shutdown.
 */

import type { ServerCatalog } from '../../../lib/model.ts';
import { adminLogin, withSession } from '../../server/admin-session.ts';
import { readCatalog } from '../../server/configure.ts';
import type { HostedCompute } from '../channel/host-calls.ts';

/** Room for the header of a page and for alignment; any change of a role or a database writes several times this. */
const slackBytes = 64n;

/**
 * Writes everything out while clients are still served, so that the shutdown itself has little left to write, and reads
 * the catalog. If the checkpoint fails, the shutdown does the same, only slower.
 */
export async function checkpointAndRead(
  compute: HostedCompute,
): Promise<{ lsn: string; catalog: ServerCatalog } | null> {
  const address = { kind: 'unix', path: compute.socketPath } as const;
  return withSession(address, adminLogin(compute.adminSecret), async (sql) => {
    await sql`CHECKPOINT`;
    if (compute.readOnly) return null;
    // The position before the catalog: whatever is written while that is read counts as later.
    const [row] = await sql<{ lsn: string }[]>`SELECT pg_current_wal_insert_lsn()::text AS lsn`;
    return row === undefined ? null : { lsn: row.lsn, catalog: await readCatalog(sql) };
  }).catch(() => null);
}

/** `end` is where the shutdown was recorded. */
export function nothingWritten(since: string, end: string): boolean {
  const distance = position(end) - position(since);
  return distance >= 0n && distance < slackBytes;
}

function position(lsn: string): bigint {
  const [high = '', low = ''] = lsn.split('/');
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}
