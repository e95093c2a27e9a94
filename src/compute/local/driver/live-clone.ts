/**
 * The driver's part of copying a running server's directory: one session that keeps a backup open while the host
 * copies. The source keeps serving. If this process dies, the session ends, and with it the backup and its slot.
 */
import { randomBytes } from 'node:crypto';
import type { BranchCopy } from '../../interface/driver.ts';
import { adminLogin, type Session, withSession } from '../../server/admin-session.ts';
import { isStillCalm, observeSource } from '../../server/copied-state.ts';
import type { BackupEnd, HostCalls, HostedCompute, LiveClone } from '../channel/host-calls.ts';

/** A backup begins with a checkpoint, which may have a lot to write. */
export const checkpointMsMax = 600_000;

export async function cloneLive(host: HostCalls, source: HostedCompute, clone: LiveClone): Promise<BranchCopy> {
  const address = { kind: 'unix', path: source.socketPath } as const;
  const run = (sql: Session) => cloneInSession(sql, host, clone);
  return withSession(address, adminLogin(source.adminSecret), run, { statementMs: checkpointMsMax });
}

export async function cloneInSession(sql: Session, host: HostCalls, clone: LiveClone): Promise<BranchCopy> {
  await beginBackup(sql);
  const copying = host.beginLiveClone(clone);
  // The session is free while the host copies.
  const [copied, seen] = await Promise.allSettled([copying, observeSource(sql)]);
  if (copied.status === 'rejected') throw copied.reason;
  try {
    if (seen.status === 'rejected') throw seen.reason;
    const end = await endBackup(sql);
    const { catalog, bytes } = seen.value;
    // One that ends later is not in the copy, because ending a backup switches to a new WAL segment.
    const isExact = await isStillCalm(sql, seen.value);
    return { receipt: await host.finishLiveClone(copied.value, end), source: { catalog, bytes, isExact } };
  } catch (error) {
    await host.abandonLiveClone(copied.value).catch(() => undefined);
    throw error;
  }
}

/** The slot keeps the WAL written from here on; being temporary, it is dropped with the session. */
export async function beginBackup(sql: Session): Promise<void> {
  const slot = `catnap_clone_${randomBytes(8).toString('hex')}`;
  await sql`SELECT pg_create_physical_replication_slot(${slot}, true, true)`;
  await sql`SELECT pg_backup_start('catnap', true)`;
}

/** Fails if this session did not begin the backup: the server was restarted, or the connection broke. */
export async function endBackup(sql: Session): Promise<BackupEnd> {
  const [end] = await sql<{ lsn: string; label: string; spaces: string | null; lastSegment: string }[]>`
    SELECT lsn::text, labelfile AS label, spcmapfile AS spaces, pg_walfile_name(lsn) AS "lastSegment"
    FROM pg_backup_stop(false)`;
  const firstSegment = /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)$/m.exec(end?.label ?? '')?.[1];
  if (!end || firstSegment === undefined) throw new Error('the server did not report where its backup begins and ends');
  if (end.spaces) throw new Error('a server with tablespaces cannot be copied');
  const { label, lastSegment, lsn } = end;
  return { label, firstSegment, lastSegment, lsn };
}
