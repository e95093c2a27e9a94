/**
 * Base images: copies of a data directory from which recovery begins. A sleeping branch is copied without a lock, so
 * that its start never waits; the copy counts only if nothing has started meanwhile. A running server is copied while
 * the driver's session holds a backup open. What never changes, the template and other base images, is linked.
 */
import { type Dirent, existsSync, linkSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { lsnBytes, lsnText } from '../../../../lib/moments.ts';
import type { BackupEnd } from '../../channel/host-calls.ts';
import { copyRunning, requireBackupEnd } from '../branches/backup-files.ts';
import { cloneCluster, isTransient } from '../branches/clone.ts';
import { type CopyResult, renameDurably, syncChanges, syncTree } from '../copy/tree.ts';
import { dataDirectory } from '../home/layout.ts';
import { type ControlFacts, readControlFile } from '../postgres/control-file.ts';
import { findPostmaster } from '../postgres/postmaster.ts';
import { parseSegment, segmentBytes, segmentName } from '../postgres/wal-segments.ts';
import {
  type BaseRecord,
  type HistoryPaths,
  type HistoryState,
  makeReadable,
  newBaseName,
  notBefore,
  readBases,
  readState,
  unfinishedBase,
  writeBaseRecord,
} from './files.ts';

const firstSecretName = 'first-secret';

export interface BaseSource {
  /** Data directory. */
  readonly data: string;
  readonly tenantUid: number | null;
  /** Who may read the base image. */
  readonly group: number | null;
}

/** Null when a server has started meanwhile, or runs, or did not end cleanly. */
export async function makeBaseAsleep(
  paths: HistoryPaths,
  source: BaseSource,
  state: HistoryState | null,
): Promise<BaseRecord | null> {
  const before = await readAsleep(source);
  if (before === null) return null;
  const control = await readControlFile(source.data);
  // The file has whole seconds. What was shut down is older than now.
  const found = new Date(Math.min(control.writtenAt.getTime() + 1_000, Date.now())).toISOString();
  const at = notBefore(state, found);
  const name = newBaseName(at);
  return inUnfinished(
    paths,
    name,
    async (directory) => {
      const { data, tenantUid, group } = source;
      const target = dataDirectory(directory);
      const receipt = await cloneCluster({ source: data, target, owner: null, sourceOwner: tenantUid, group });
      // A start writes the control file before it changes anything else that matters.
      if (!(await readAsleep(source))?.equals(before)) return null;
      const { bytes, bytesShared } = receipt;
      return { name, at, ...positionOf(control), bytes, bytesShared, isLive: false };
    },
    source.group,
  );
}

/**
 * A snapshot as it is, with whatever log its recovery needs: that of a server that ran has a backup label, that of a
 * server that died goes on behind its last checkpoint. Nothing follows it, so it begins and ends at one position.
 */
export async function makeBaseOfSnapshot(paths: HistoryPaths, source: BaseSource, at: string): Promise<BaseRecord> {
  const name = newBaseName(at);
  const made = await inUnfinished(
    paths,
    name,
    async (directory) => {
      const { data, tenantUid, group } = source;
      const target = dataDirectory(directory);
      const receipt = await cloneCluster({ source: data, target, owner: null, sourceOwner: tenantUid, group });
      const { timeline, start } = positionOf(await readControlFile(target));
      const { bytes, bytesShared } = receipt;
      return { name, at, timeline, start, lsn: start, bytes, bytesShared, isLive: false };
    },
    source.group,
  );
  if (made === null) throw new Error('BUG: a base image of a snapshot was refused');
  return made;
}

/**
 * A base image of a running server that a kill kept from being used: the log was interrupted before it, and its end was
 * not recorded. Null for none.
 */
export async function findUnusedLiveBase(paths: HistoryPaths): Promise<BaseRecord | null> {
  const [state, last] = [await readState(paths), (await readBases(paths)).at(-1)];
  if (state === null || state.copied !== null || !last?.isLive || last.isLinked) return null;
  const { lostSince } = state;
  return lostSince === null || lsnBytes(last.lsn) > lsnBytes(lostSince.lsn) ? last : null;
}

/** Whether the server still has the log without which a base image cannot be used. */
export async function hasLogOf({ timeline, start }: BaseRecord, data: string): Promise<boolean> {
  const first = segmentName(timeline, Number(lsnBytes(start) / segmentBytes));
  const { timeline: current } = await readControlFile(data);
  return current === timeline && (await lstat(join(data, 'pg_wal', first)).catch(() => null)) !== null;
}

/** A base image of what the data still is, which a kill kept from being used; null for none. */
export async function findUnusedBase({ data, paths }: { readonly data: string; readonly paths: HistoryPaths }) {
  const [state, last] = [await readState(paths), (await readBases(paths)).at(-1)];
  if (state === null || state.copied !== null || last === undefined || last.isLive) return null;
  const { timeline, checkpointLsn, shutDown } = await readControlFile(data);
  return shutDown && last.timeline === timeline && last.lsn === checkpointLsn ? last : null;
}

/** The control file of a directory in which no server runs and that was left in order; null for any other. */
async function readAsleep({ data, tenantUid }: BaseSource): Promise<Buffer | null> {
  if (await findPostmaster(data, tenantUid)) return null;
  if (await lstat(join(data, 'postmaster.pid')).catch(() => null)) return null;
  if (!(await readControlFile(data)).shutDown) return null;
  return readFile(join(data, 'global', 'pg_control'));
}

const positionOf = ({ timeline, redo, checkpoint }: ControlFacts) => ({
  timeline,
  start: lsnText((redo / segmentBytes) * segmentBytes),
  lsn: lsnText(checkpoint),
});

export interface LinkedBase {
  /** Files that never change: of the template, or of another base image. */
  readonly data: string;
  readonly firstSecret: string | null;
  readonly facts: Omit<BaseRecord, 'name' | 'isLinked'>;
  readonly group: number | null;
}

/** The same files by other names. */
export async function makeLinkedBase(paths: HistoryPaths, linked: LinkedBase): Promise<BaseRecord> {
  const { data, firstSecret, facts, group } = linked;
  const name = newBaseName(facts.at);
  const record = { name, ...facts, isLinked: true };
  await inUnfinished(
    paths,
    name,
    async (directory) => {
      await linkTree(data, dataDirectory(directory), group);
      if (firstSecret !== null) {
        await writeFile(join(directory, firstSecretName), firstSecret, { mode: 0o600 });
        makeReadable(join(directory, firstSecretName), 0o640, group);
      }
      return record;
    },
    group,
  );
  return record;
}

/** Takes about a millisecond. */
const linksATurn = 64;

/**
 * Synchronous: a link takes microseconds, and handing each to another thread takes several times the CPU, just when the
 * next project may be in the making. Others get their turn in between.
 */
async function linkTree(source: string, target: string, group: number | null): Promise<void> {
  const folders = [''];
  let linked = 0;
  for (const folder of folders) {
    mkdirSync(`${target}${folder}`, { mode: 0o700 });
    makeReadable(`${target}${folder}`, 0o750, group);
    for (const entry of readdirSync(`${source}${folder}`, { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(path);
      else if (linkOne(entry, { source, target, path, group }) && ++linked % linksATurn === 0) await setImmediate();
    }
  }
}

interface LinkedFile {
  readonly source: string;
  readonly target: string;
  /** Below both, with a slash before it. */
  readonly path: string;
  readonly group: number | null;
}

function linkOne(entry: Dirent, { source, target, path, group }: LinkedFile): boolean {
  if (!entry.isFile() || isTransient(path.slice(1))) return false;
  linkSync(`${source}${path}`, `${target}${path}`);
  // The same file as in the last history that began with it: it mostly has its mode and group already.
  const { mode, gid } = lstatSync(`${target}${path}`);
  if (group !== null && ((mode & 0o777) !== linkedMode || gid !== group)) {
    makeReadable(`${target}${path}`, linkedMode, group);
  }
  return true;
}

const linkedMode = 0o640;

export interface BaseBegun {
  readonly name: string;
  readonly copied: CopyResult;
}

/** Copies a running server's directory without its log, which the history has or gets. */
export async function beginLiveBase(paths: HistoryPaths, source: BaseSource): Promise<BaseBegun> {
  const name = newBaseName(new Date().toISOString());
  const directory = unfinishedBase(paths, name);
  await mkdir(directory, { mode: 0o700 });
  makeReadable(directory, 0o750, source.group);
  try {
    const { data, tenantUid, group } = source;
    const target = dataDirectory(directory);
    const copied = await copyRunning({ source: data, target, owner: null, sourceOwner: tenantUid, group });
    return { name, copied };
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

export async function finishLiveBase(
  paths: HistoryPaths,
  { name, copied }: BaseBegun,
  end: BackupEnd & { readonly at: string },
  group: number | null,
): Promise<BaseRecord> {
  requireBackupEnd(end);
  const directory = unfinishedBase(paths, name);
  const data = dataDirectory(directory);
  const { timeline, at } = parseSegment(end.firstSegment);
  const record = {
    name,
    timeline,
    start: lsnText(BigInt(at) * segmentBytes),
    lsn: lsnText(lsnBytes(end.lsn)),
    at: new Date(end.at).toISOString(),
    bytes: copied.bytesCopied + copied.bytesShared,
    bytesShared: copied.bytesShared,
    isLive: true,
  };
  await writeFile(join(data, 'backup_label'), end.label, { mode: 0o600, flag: 'wx' });
  makeReadable(join(data, 'backup_label'), 0o640, group);
  for (const folder of ['pg_wal', 'pg_wal/archive_status']) {
    await mkdir(join(data, folder), { mode: 0o700 });
    makeReadable(join(data, folder), 0o750, group);
  }
  await publishBase(paths, record, group);
  return record;
}

export async function abandonBase(paths: HistoryPaths, name: string): Promise<void> {
  await rm(unfinishedBase(paths, name), { recursive: true, force: true });
}

async function inUnfinished(
  paths: HistoryPaths,
  name: string,
  make: (directory: string) => Promise<BaseRecord | null>,
  group: number | null,
): Promise<BaseRecord | null> {
  const directory = unfinishedBase(paths, name);
  await mkdir(directory, { mode: 0o700 });
  makeReadable(directory, 0o750, group);
  try {
    const record = await make(directory);
    if (record !== null) await publishBase(paths, record, group);
    return record;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Complete and durable before it gets its name. */
async function publishBase(paths: HistoryPaths, record: BaseRecord, group: number | null): Promise<void> {
  const directory = unfinishedBase(paths, record.name);
  writeBaseRecord(directory, record, group);
  // Of a linked one only its own small files were written: the others were on disk before they got these names.
  if (record.isLinked) await syncChanges(directory, ownFiles(directory));
  else await syncTree(directory);
  await renameDurably(directory, join(paths.bases, record.name));
}

const ownFiles = (directory: string) =>
  ['base.json', firstSecretName].map((name) => join(directory, name)).filter((path) => existsSync(path));

/** How base images are copied; a test may make it slow. */
export interface BaseCopies {
  readonly ofRunning: typeof beginLiveBase;
  readonly ofSleeping: typeof makeBaseAsleep;
  /** A base image of a sleeping branch that takes longer is finished behind its caller's back. */
  readonly waitMs: number;
}

export const baseCopies: BaseCopies = { ofRunning: beginLiveBase, ofSleeping: makeBaseAsleep, waitMs: 1_000 };
