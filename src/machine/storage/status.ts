/**
 * `catnap storage status`: how branches are copied here, what they and their histories take, what they share. Changes
 * nothing.
 */
import { existsSync } from 'node:fs';
import { readdir, stat, statfs } from 'node:fs/promises';
import { detectCloneMethod } from '../../compute/local/host/copy/method.ts';
import { type Extents, measureExtents, type Range, unionBytes } from '../../compute/local/host/disks/extents.ts';
import {
  findStorageRoot,
  isMounted,
  readStorageRecord,
  storagePaths,
} from '../../compute/local/host/disks/storage-image.ts';
import { createLayout, dataDirectory, isId, type Layout } from '../../compute/local/host/home/layout.ts';
import { readBranchRecord } from '../../compute/local/host/home/records.ts';
import { selectBranchesBeforePurge } from '../../db/deleted.ts';
import type { Config } from '../../lib/config.ts';
import { withSystemDatabase } from '../system-database.ts';

export interface BranchUse {
  readonly project: string;
  readonly branch: string;
  /** What its files take, shared or not. */
  readonly bytes: number;
  /** How much of that is shared with other files. */
  readonly shared: number;
  /** Pieces of its most fragmented file: cloning takes time for each of them. */
  readonly extents: number;
}

export interface StorageStatus {
  /** Null when the directory is not writable, so nothing could be tried. */
  readonly method: 'reflink' | 'copy' | null;
  readonly path: string;
  readonly image: { readonly file: string; readonly bytes: number; readonly bytesOnDisk: number } | null;
  /** There is an image, but it is not mounted: Catnap mounts it when it starts. */
  readonly isAway: boolean;
  readonly bytesUsed: number;
  readonly bytesFree: number;
  /** Null where extents cannot be read: e2fsprogs has the program for it. */
  readonly branches: readonly BranchUse[] | null;
  /** What all branches would take if none shared anything, and what they do take. */
  readonly branchBytes: number;
  readonly branchBytesOnDisk: number;
  /** What histories would take if they shared nothing, and what they take beyond the blocks of branches. */
  readonly historyBytes: number;
  readonly historyBytesOnDisk: number;
  /** What a purge of everything deleted would free at least, history included; null where that is not known. */
  readonly purgeBytes: number | null;
}

export type DeletedBranch = Pick<BranchUse, 'project' | 'branch'>;

export async function storageStatus(
  config: Pick<Config, 'home' | 'databaseUrl'>,
  findDeleted = findDeletedBranches,
): Promise<StorageStatus> {
  const { home } = config;
  if (!existsSync(home)) throw new Error(`there is no data home ${home} yet: start Catnap once, or set CATNAP_HOME`);
  const record = await readStorageRecord(home);
  const { image, point } = storagePaths(home);
  const root = await findStorageRoot(home);
  const layout = createLayout(home, root);
  const { bsize, blocks, bfree, bavail } = await statfs(root);
  const file = record === null ? null : await stat(image).catch(() => null);
  return {
    method: await detectCloneMethod(root),
    path: root,
    image:
      record === null
        ? null
        : { file: image, bytes: file?.size ?? record.bytes, bytesOnDisk: (file?.blocks ?? 0) * 512 },
    isAway: record !== null && !(await isMounted(point)),
    bytesUsed: bsize * (blocks - bfree),
    bytesFree: bsize * bavail,
    ...(await measureBranches(layout)),
    purgeBytes: await findDeleted(config).then(
      (deleted) => measurePurge(layout, deleted),
      () => null,
    ),
  };
}

/** Fails where the system database does not run. */
async function findDeletedBranches(config: Pick<Config, 'home' | 'databaseUrl'>): Promise<readonly DeletedBranch[]> {
  const rows = await withSystemDatabase(config, ({ sql }) => selectBranchesBeforePurge(sql));
  return rows.map(({ projectId, id }) => ({ project: projectId, branch: id }));
}

async function measureBranches(layout: Layout) {
  const branches: BranchUse[] = [];
  const shared: Range[] = [];
  for (const { project, branch } of await findBranches(layout)) {
    const found = await measureExtents(dataDirectory(layout.branch(project, branch)));
    if (found === null) return unknown;
    branches.push(branchUse(project, branch, found));
    for (const range of found.shared) shared.push(range);
  }
  const sum = (read: (use: BranchUse) => number) => branches.reduce((total, use) => total + read(use), 0);
  const branchBytesOnDisk = sum((use) => use.bytes - use.shared) + unionBytes(shared);
  const history = await measureHistories(layout, shared);
  if (history === null) return unknown;
  return { branches, branchBytes: sum((use) => use.bytes), branchBytesOnDisk, ...history };
}

const unknown = { branches: null, branchBytes: 0, branchBytesOnDisk: 0, historyBytes: 0, historyBytesOnDisk: 0 };

async function measureHistories({ histories }: Layout, ofBranches: readonly Range[]) {
  if (!existsSync(histories)) return { historyBytes: 0, historyBytesOnDisk: 0 };
  const found = await measureExtents(histories);
  if (found === null) return null;
  const sharedAlone = unionBytes([...ofBranches, ...found.shared]) - unionBytes(ofBranches);
  return { historyBytes: found.bytes, historyBytesOnDisk: found.bytes - found.sharedBytes + sharedAlone };
}

/** Only what nothing else shares: that is freed whatever stays. */
async function measurePurge(layout: Layout, deleted: readonly DeletedBranch[]): Promise<number | null> {
  let bytes = 0;
  for (const { project, branch } of deleted) {
    const directory = layout.branch(project, branch);
    const historyId = (await readBranchRecord(directory))?.past?.historyId;
    const history = historyId === undefined ? null : layout.history(project, historyId);
    for (const folder of [dataDirectory(directory), history]) {
      if (folder === null || !existsSync(folder)) continue;
      const found = await measureExtents(folder);
      if (found === null) return null;
      bytes += found.bytes - found.sharedBytes;
    }
  }
  return bytes;
}

function branchUse(project: string, branch: string, found: Extents): BranchUse {
  return { project, branch, bytes: found.bytes, shared: found.sharedBytes, extents: found.piecesMax };
}

async function findBranches(layout: Layout): Promise<{ project: string; branch: string }[]> {
  const ids = async (folder: string) => (await readdir(folder).catch(() => [] as string[])).filter(isId);
  const projects = await ids(layout.projects);
  const found = projects.map(async (project) =>
    (await ids(layout.branches(project))).map((branch) => ({ project, branch })),
  );
  return (await Promise.all(found)).flat();
}
