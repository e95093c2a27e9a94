/**
 * The image that `catnap storage create` makes: an XFS filesystem in one sparse file of the data home, mounted beside
 * it, for machines whose own filesystem cannot share blocks. `storage.json` records that there is one; the same id
 * inside the image proves that it is the right one.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, open, readFile, realpath, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../../../../lib/errors.ts';
import { runProgram } from '../../../../lib/run-program.ts';
import { syncTree } from '../copy/tree.ts';
import { mountsUnder, unmount } from './mounts.ts';

/** `moved`: the image holds everything and is authoritative; what was moved may still be in its old directory. */
export interface StorageRecord {
  readonly id: string;
  readonly state: 'moved' | 'ready';
  readonly bytes: number;
}

const makers = ['/usr/sbin/mkfs.xfs', '/sbin/mkfs.xfs', '/usr/local/sbin/mkfs.xfs'];
const loopPrograms = ['/usr/sbin/losetup', '/sbin/losetup'];
const idName = 'storage-id';
/** Moved into the image. */
export const movedFolders = ['projects', 'templates', 'history'] as const;
/** Not moved: they start empty in the image. */
const renewedFolders = ['work', 'trash'];

export const storagePaths = (home: string) => ({
  image: join(home, 'storage.img'),
  point: join(home, 'storage'),
  record: join(home, 'storage.json'),
});

export async function readStorageRecord(home: string): Promise<StorageRecord | null> {
  const text = await readFile(storagePaths(home).record, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // A home that belongs to another user is refused elsewhere, with a message that says so.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'EACCES') return null;
    throw error;
  });
  return text === null ? null : (JSON.parse(text) as StorageRecord);
}

/** Null when an image can be made here, otherwise the reason. */
export function whyNoStorage(): string | null {
  if (process.platform !== 'linux') return 'only Linux has loop devices; APFS on macOS shares blocks by itself';
  if (process.getuid?.() !== 0)
    return 'only root can mount filesystems: run it with sudo, as Catnap itself then must be';
  if (!makers.some((path) => existsSync(path))) return 'mkfs.xfs is not installed; on Debian: apt install xfsprogs';
  return null;
}

/** An empty filesystem, mounted. It is not used before its record is written. */
export async function makeStorage(home: string, bytes: number): Promise<StorageRecord> {
  const { image, point } = storagePaths(home);
  const maker = makers.find((path) => existsSync(path));
  if (maker === undefined) throw new Error('mkfs.xfs is not installed');
  const handle = await open(image, 'wx', 0o600);
  try {
    await handle.truncate(bytes);
  } finally {
    await handle.close();
  }
  await runProgram(maker, ['-q', '-m', 'reflink=1', image]);
  await mountStorage(image, point);
  const record: StorageRecord = { id: randomBytes(16).toString('hex'), state: 'moved', bytes };
  await writeFile(join(point, idName), record.id, { mode: 0o600 });
  return record;
}

/** From here on the data is in the image. */
export async function commitStorage(home: string, record: StorageRecord): Promise<void> {
  const { point, record: file } = storagePaths(home);
  await syncTree(point);
  await writeFile(`${file}.new`, `${JSON.stringify(record)}\n`, { mode: 0o644, flush: true });
  await rename(`${file}.new`, file);
  await syncTree(home);
}

/** Removes what was moved from its old directories. */
export async function finishMove(home: string, record: StorageRecord): Promise<void> {
  for (const name of [...movedFolders, ...renewedFolders]) await rm(join(home, name), { recursive: true, force: true });
  await commitStorage(home, { ...record, state: 'ready' });
}

/** Removes an image that was never committed: making it failed or was cut off. */
export async function removeUncommitted(home: string): Promise<boolean> {
  if (await readStorageRecord(home)) throw new Error('BUG: this image has a record');
  const { image, point, record } = storagePaths(home);
  const existed = existsSync(image);
  while (await isMounted(point)) await unmount(point);
  for (const file of [image, `${record}.new`]) await rm(file, { force: true });
  await rmdir(point).catch(() => undefined);
  return existed;
}

/** At each start: mounts the image if there is one, and returns where the data is. */
export async function attachStorage(home: string): Promise<string> {
  const record = await readStorageRecord(home);
  if (record === null) return home;
  const { image, point } = storagePaths(home);
  const unchanged = 'nothing was changed; see docs/storage.md';
  if (!(await isMounted(point))) {
    if (!existsSync(image)) throw new Error(`${image} is missing, and with it all branches: put it back; ${unchanged}`);
    const problem = process.getuid?.() === 0 ? null : 'only root can mount it';
    if (problem !== null) throw new Error(`${image} holds the branches, and ${problem}: start Catnap as root`);
    await mountStorage(image, point).catch((error: unknown) => {
      throw new Error(`${image} could not be mounted; ${unchanged}: ${errorText(error)}`);
    });
  }
  const found = await readFile(join(point, idName), 'utf8').catch(() => null);
  if (found !== record.id) throw new Error(`${point} is not the storage that storage.json names; ${unchanged}`);
  if (record.state === 'moved') await finishMove(home, record);
  return point;
}

/** Where the data is, for callers that mount nothing: an image that is not mounted cannot be read. */
export async function findStorageRoot(home: string): Promise<string> {
  const { point } = storagePaths(home);
  return (await readStorageRecord(home)) && (await isMounted(point)) ? point : home;
}

export async function isMounted(point: string): Promise<boolean> {
  const real = await realpath(point).catch(() => null);
  return real !== null && (await mountsUnder(real)).includes(real);
}

/**
 * Direct I/O, because the pages of the files in it are cached already; the device is freed with the mount. `discard`
 * returns the blocks of deleted branches to the machine.
 */
async function mountStorage(image: string, point: string): Promise<void> {
  await mkdir(point, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const losetup = loopPrograms.find((path) => existsSync(path)) ?? 'losetup';
  // It may print warnings beside the name.
  const said = await runProgram(losetup, ['--find', '--show', image]);
  const device = /^\/dev\/\S+$/m.exec(said)?.[0];
  if (device === undefined) throw new Error(`losetup printed ${said.trim()}`);
  try {
    await runProgram(losetup, ['--direct-io=on', device]).catch(() => undefined);
    await runProgram('mount', ['-t', 'xfs', '-o', 'noatime,nosuid,nodev,noexec,discard', device, point]);
    await chmod(point, 0o711);
  } finally {
    await runProgram(losetup, ['--detach', device]);
  }
}
