/** Copies the data directory of a cluster that is not running: the template's, or a sleeping branch's. */
import { basename } from 'node:path';
import type { BranchReceipt } from '../../../interface/driver.ts';
import { historySlot } from '../../../interface/own-logins.ts';
import { type CopyResult, copyTree } from '../copy/tree.ts';
import { isBeforeRecovery, readControlFile } from '../postgres/control-file.ts';
import { isSegment, segmentsOf } from '../postgres/wal-segments.ts';

export interface CloneSpec {
  /** Data directory; nothing may run on it until the copy is done. */
  readonly source: string;
  /** Must not exist. */
  readonly target: string;
  /** The uid that will own the copy, or null for our own. */
  readonly owner: number | null;
  /** The uid of the tenant that owns the source, or null when it is Catnap's own. */
  readonly sourceOwner: number | null;
  /** A group that may read the copy. */
  readonly group?: number | null;
  /** The copy is a branch: from its first start on, its server keeps the log that its history has not copied yet. */
  readonly keepsLog?: boolean;
}

/** These belong to a running server or to its replicas; the directories are kept, their contents are not. */
const emptied = ['pg_replslot', 'pg_stat_tmp', 'pg_subtrans', 'pg_notify', 'pg_serial', 'pg_snapshots', 'pg_dynshmem'];
/** `base/pgsql_tmp` holds temporary files, or is the link to the disk that does. */
const leftOut = ['postmaster.pid', 'postmaster.opts', 'base/pgsql_tmp'];

export async function cloneCluster(spec: CloneSpec): Promise<BranchReceipt> {
  const started = performance.now();
  const isUnneeded = await unneededWal(spec.source);
  const copied = await copyTree(spec.source, spec.target, {
    owner: spec.owner,
    sourceOwner: spec.sourceOwner,
    group: spec.group,
    skip: (path) => isTransient(path, spec.keepsLog) || isUnneeded(path),
  });
  const { shutDown, checkpointLsn } = await readControlFile(spec.target);
  // After an unclean exit the data continues past the last checkpoint, and only recovery finds out how far.
  return receiptOf([copied], { lsn: shutDown ? checkpointLsn : null, started });
}

export function receiptOf(
  copies: readonly CopyResult[],
  { lsn, started }: { readonly lsn: string | null; readonly started: number },
): BranchReceipt {
  const sum = (read: (copy: CopyResult) => number) => copies.reduce((total, copy) => total + read(copy), 0);
  const bytesShared = sum((copy) => copy.bytesShared);
  return {
    method: bytesShared > 0 ? 'reflink' : 'copy',
    lsn,
    durationMs: Math.round(performance.now() - started),
    bytes: bytesShared + sum((copy) => copy.bytesCopied),
    bytesShared,
  };
}

/**
 * A server that was shut down needs only the segment of its last checkpoint. The others were kept for replicas, or are
 * recycled files with nothing in them: up to 1 GB of both. If recovery is still to come, any segment may be needed.
 */
async function unneededWal(source: string): Promise<(path: string) => boolean> {
  const { shutDown, timeline, redo, checkpoint } = await readControlFile(source);
  if (!shutDown || isBeforeRecovery(source)) return () => false;
  const needed = segmentsOf(timeline, redo, checkpoint);
  return (path) => path.startsWith('pg_wal/') && isSegment(basename(path)) && !needed.has(basename(path));
}

/** `path` is relative to the data directory. The slot of the history is the one that a branch takes along. */
export function isTransient(path: string, keepsLog = false): boolean {
  if (keepsLog && `${path}/`.startsWith(`pg_replslot/${historySlot}/`)) return false;
  return leftOut.includes(path) || emptied.some((directory) => path.startsWith(`${directory}/`));
}
