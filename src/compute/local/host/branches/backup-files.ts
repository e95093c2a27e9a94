/**
 * The files that make a copy of a running server's directory recoverable: the backup label, the WAL written while the
 * copy was made, and a signal file. Without the label Postgres would start such a copy, and be silently wrong.
 */

import { constants, lstatSync } from 'node:fs';
import { lchown, mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BackupEnd } from '../../channel/host-calls.ts';
import { type CopyResult, copyTree } from '../copy/tree.ts';
import type { Layout } from '../home/layout.ts';
import { discard } from '../home/tenant-directories.ts';
import { isSegment, segmentsBetween } from '../postgres/wal-segments.ts';
import { isTransient } from './clone.ts';

/** `recovery` ends on a new timeline, `standby` keeps following the server that it was copied from. */
export type Signal = 'recovery' | 'standby';

export interface BackupPaths {
  /** Data directory of the running server. */
  readonly source: string;
  readonly target: string;
  readonly owner: number | null;
  /** As for a clone. */
  readonly keepsLog?: boolean;
}

/** A copy that does not belong to the tenant. */
export interface KeptPaths extends BackupPaths {
  readonly sourceOwner: number | null;
  readonly group: number | null;
}

const historyPattern = /^[0-9A-F]{8}\.history$/;
const labelBytesMax = 8_192;

export function requireBackupEnd(end: BackupEnd): void {
  if (!isSegment(end.firstSegment) || !isSegment(end.lastSegment)) throw new Error('not the name of a WAL segment');
  if (typeof end.label !== 'string' || end.label.length > labelBytesMax) throw new Error('not a backup label');
  if (typeof end.lsn !== 'string' || !/^[0-9A-F]{1,8}\/[0-9A-F]{1,8}$/.test(end.lsn)) throw new Error('not an LSN');
}

/** Everything but the WAL, while the server runs. */
export async function copyRunning(paths: BackupPaths | KeptPaths): Promise<CopyResult> {
  const { source, target, owner, keepsLog } = paths;
  const skip = (path: string) => path === 'pg_wal' || isTransient(path, keepsLog);
  const kept = 'group' in paths ? { group: paths.group, sourceOwner: paths.sourceOwner } : { sourceOwner: owner };
  const result = await copyTree(source, target, { owner, ...kept, live: true, skip });
  await copyControlFile(paths);
  return result;
}

export interface AddedFiles {
  /** What was copied of the WAL. */
  readonly wal: CopyResult;
  /** The files that were written and not copied, that of `copyRunning` included. */
  readonly written: readonly string[];
}

/** Adds what recovery needs besides that copy. */
export async function addBackupFiles(paths: BackupPaths, end: BackupEnd, signal: Signal): Promise<AddedFiles> {
  const { target, owner } = paths;
  const wal = await copyWal(paths, end);
  const files = { backup_label: end.label, [`${signal}.signal`]: '' };
  for (const [name, text] of Object.entries(files)) {
    const path = join(target, name);
    await writeFile(path, text, { mode: 0o600, flag: 'wx' });
    if (owner !== null) await lchown(path, owner, owner);
  }
  return { wal, written: [controlFile, ...Object.keys(files)].map((name) => join(target, name)) };
}

const controlFile = join('global', 'pg_control');

/**
 * The server rewrites this one file in place, and a reader may see half of the write; recovery would then refuse it.
 * Two reads that agree are complete.
 */
async function copyControlFile({ source, target }: BackupPaths): Promise<void> {
  let last = await readPlain(join(source, controlFile));
  for (;;) {
    const again = await readPlain(join(source, controlFile));
    if (again.equals(last)) break;
    last = again;
  }
  await writeFile(join(target, controlFile), last, { flag: constants.O_WRONLY | constants.O_NOFOLLOW });
}

async function readPlain(path: string): Promise<Buffer> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

async function copyWal({ source, target, owner }: BackupPaths, end: BackupEnd): Promise<CopyResult> {
  const wanted = segmentsBetween(end.firstSegment, end.lastSegment);
  const to = join(target, 'pg_wal');
  const wal = await copyTree(join(source, 'pg_wal'), to, {
    owner,
    sourceOwner: owner,
    live: true,
    skip: (path) => !wanted.has(path) && !historyPattern.test(path),
  });
  const copied = new Set(await readdir(to));
  const missing = [...wanted].filter((name) => !copied.has(name));
  if (missing.length > 0) throw new Error(`WAL that the copy needs is gone: ${missing.join(', ')}`);
  await mkdir(join(to, 'archive_status'), { mode: 0o700 });
  if (owner !== null) await lchown(join(to, 'archive_status'), owner, owner);
  return wal;
}

const slotPattern = /^[a-z0-9_]{1,63}$/;

/** For a primary that is asleep: when it starts, the slot is gone. */
export async function removeSlotDirectory(dataDirectory: string, slot: string, layout: Layout): Promise<void> {
  if (typeof slot !== 'string' || !slotPattern.test(slot)) throw new Error('not the name of a replication slot');
  await discard(join(dataDirectory, 'pg_replslot', slot), layout);
}

/**
 * Settings for starting a server on a copy that has not recovered yet. They are on the command line because they are
 * for this one start: in the file, a later reload would ask for a restart. Sessions wait until recovery is over, since
 * they would see its end as an error. The first segment of the new timeline is not filled with zeros: writing 16 MB
 * that is not needed yet was a fifth of the start, and most of the space that a fresh branch took.
 */
export async function recoveryArguments(dataDirectory: string): Promise<string[]> {
  const isWaiting = lstatSync(join(dataDirectory, 'recovery.signal'), { throwIfNoEntry: false }) !== undefined;
  return isWaiting ? ['-c', 'restore_command=false', '-c', 'hot_standby=off', '-c', 'wal_init_zero=off'] : [];
}
