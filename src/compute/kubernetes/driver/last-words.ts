/** What Catnap asks of a server that is about to be stopped. */
import type { SettledServer } from '../../interface/driver.ts';
import type { Session } from '../../server/admin-session.ts';
import { readCatalog } from '../../server/configure.ts';
import { endClientsReplication } from '../../server/logical-replication.ts';
import { readWrittenLog } from '../../server/measures.ts';
import { readSize } from '../../server/work.ts';

/** A checkpoint of a busy server may have a lot to write. */
export const checkpointMsMax = 600_000;

export async function settleServer(sql: Session): Promise<Omit<SettledServer, 'branchId'>> {
  await sql`CHECKPOINT`;
  const [catalog, bytes] = await Promise.all([readCatalog(sql), readSize(sql)]);
  // What is written from here on cannot be told from outside: a volume cannot be read while no server runs on it.
  const wal = await readWrittenLog(sql).catch(() => null);
  return { catalog, bytes, wal, position: null };
}

/** Only makes the shutdown shorter; the server writes everything out by itself. */
export async function writeOut(sql: Session): Promise<void> {
  await sql`CHECKPOINT`;
  await endClientsReplication(sql);
}
