/** Copies the data directory of a cluster that does not run: the template's, or a sleeping branch's. */
import type { BranchReceipt } from '../driver.ts';
import { readControlFile } from './control-file.ts';
import { copyTree } from './copy-tree.ts';

export interface CloneSpec {
  /** Data directory; nothing may run on it until the copy is done. */
  readonly source: string;
  /** Must not exist. */
  readonly target: string;
  /** The uid that the copy will belong to, or null for our own. */
  readonly owner: number | null;
  /** The tenant whose directory the source is, or null when it is Catnap's own. */
  readonly sourceOwner: number | null;
}

/** Belong to a running server or to its replicas; the directories stay, what is in them does not. */
const emptied = ['pg_replslot', 'pg_stat_tmp', 'pg_subtrans', 'pg_notify', 'pg_serial', 'pg_snapshots', 'pg_dynshmem'];
/** `base/pgsql_tmp` holds temporary files, or is the link to the disk that does. */
const leftOut = ['postmaster.pid', 'postmaster.opts', 'base/pgsql_tmp'];

export async function cloneCluster(spec: CloneSpec): Promise<BranchReceipt> {
  const started = performance.now();
  const { bytes, reflinked } = await copyTree(spec.source, spec.target, {
    owner: spec.owner,
    sourceOwner: spec.sourceOwner,
    skip: isTransient,
  });
  const { shutDown, checkpointLsn } = await readControlFile(spec.target);
  return {
    method: reflinked ? 'reflink' : 'copy',
    // After an unclean exit the data goes on past the last checkpoint, and only recovery knows how far.
    lsn: shutDown ? checkpointLsn : null,
    durationMs: Math.round(performance.now() - started),
    bytes,
  };
}

/** `path` is relative to the data directory. */
export function isTransient(path: string): boolean {
  return leftOut.includes(path) || emptied.some((directory) => path.startsWith(`${directory}/`));
}
