/**
 * The driver's part of copying a running server's directory: one session that keeps a backup open while the host
 * copies. The parent goes on serving. Should this process die, the session ends, and the backup and its slot with it.
 */
import { randomBytes } from 'node:crypto';
import { adminLogin, type Session, withSession } from '../admin-session.ts';
import type { BranchReceipt } from '../driver.ts';
import type { BackupEnd } from './backup-files.ts';
import type { ComputeHost, HostedCompute } from './host-interface.ts';
import type { LiveClone } from './live-clones.ts';

/** A backup begins with a checkpoint, which may have much to write. */
export const checkpointMsMax = 600_000;

export async function cloneLive(host: ComputeHost, parent: HostedCompute, clone: LiveClone): Promise<BranchReceipt> {
  const address = { kind: 'unix', path: parent.socketPath } as const;
  const run = (sql: Session) => cloneInSession(sql, host, clone);
  return withSession(address, adminLogin(parent.adminSecret), run, { statementMs: checkpointMsMax });
}

export async function cloneInSession(sql: Session, host: ComputeHost, clone: LiveClone): Promise<BranchReceipt> {
  // An owner may have set a limit for the whole server, and this session sits idle while the host copies.
  await sql`SET idle_session_timeout = 0`;
  await beginBackup(sql);
  const token = await host.beginLiveClone(clone);
  try {
    return await host.finishLiveClone(token, await endBackup(sql));
  } catch (error) {
    await host.abandonLiveClone(token).catch(() => undefined);
    throw error;
  }
}

/** The slot keeps the WAL that is written from here on; a temporary one goes with the session. */
async function beginBackup(sql: Session): Promise<void> {
  const slot = `catnap_clone_${randomBytes(8).toString('hex')}`;
  await sql`SELECT pg_create_physical_replication_slot(${slot}, true, true)`;
  await sql`SELECT pg_backup_start('catnap', true)`;
}

/** Fails if the session is not the one that began: the server was restarted, or the connection broke. */
async function endBackup(sql: Session): Promise<BackupEnd> {
  const [end] = await sql<{ lsn: string; label: string; spaces: string | null; lastSegment: string }[]>`
    SELECT lsn::text, labelfile AS label, spcmapfile AS spaces, pg_walfile_name(lsn) AS "lastSegment"
    FROM pg_backup_stop(false)`;
  const firstSegment = /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)$/m.exec(end?.label ?? '')?.[1];
  if (!end || firstSegment === undefined) throw new Error('the server did not say where its backup begins and ends');
  if (end.spaces) throw new Error('a server with tablespaces cannot be copied');
  const { label, lastSegment, lsn } = end;
  return { label, firstSegment, lastSegment, lsn };
}
