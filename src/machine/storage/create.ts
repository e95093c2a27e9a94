/**
 * `catnap storage create`: makes an image that can share blocks and moves the data into it. Everything is copied before
 * the record is written, and nothing is removed before that; so a failure, or a kill, leaves the data complete in
 * either the old directory or the new one. The next start, or the next attempt, removes the other.
 */
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { detectCloneMethod } from '../../compute/local/host/copy/method.ts';
import { inWords } from '../../compute/local/host/copy/room.ts';
import {
  commitStorage,
  finishMove,
  makeStorage,
  movedFolders,
  readStorageRecord,
  removeUncommitted,
  storagePaths,
  whyNoStorage,
} from '../../compute/local/host/disks/storage-image.ts';
import { isWorkedUnder } from '../../compute/local/host/postgres/process-info.ts';
import type { Config } from '../../lib/config.ts';
import { runProgram } from '../../lib/run-program.ts';
import { ensureHome } from '../home.ts';
import { takeInstanceLock } from '../instance-lock.ts';

export interface StoragePlan {
  readonly image: string;
  readonly mountPoint: string;
  readonly bytes: number;
  /** Bytes that are copied into it and then removed from their old directory. */
  readonly movedBytes: number;
  readonly projects: number;
}

/** A cluster and its WAL take some 50 MB, and XFS itself needs 300 MB. */
export const storageBytesMin = 512 * 1024 ** 2;
/** For the filesystem's own tables, and room to work, besides the data that moves. */
const headroom = 1.2;

/** Changes nothing. Throws if the image cannot be made. */
export async function planStorage({ home }: Pick<Config, 'home'>, bytes: number): Promise<StoragePlan> {
  const problem = whyNoStorage();
  if (problem !== null) throw new Error(problem);
  if (bytes < storageBytesMin) throw new Error(`--size must be at least ${storageBytesMin / 1024 ** 2}M`);
  if (await readStorageRecord(home)) throw new Error(`${home} has a storage image already; see catnap storage status`);
  const folder = existsSync(home) ? home : dirname(home);
  if ((await detectCloneMethod(folder)) === 'reflink') {
    throw new Error(`the filesystem of ${home} shares blocks already: there is nothing to gain`);
  }
  if (await isWorkedUnder(join(home, 'projects'))) {
    throw new Error(`Postgres servers run on ${home}: start Catnap and stop it with --stop-computes first`);
  }
  const sizes = await Promise.all(movedFolders.map((name) => folderBytes(join(home, name))));
  const movedBytes = sizes.reduce((sum, size) => sum + size, 0);
  if (movedBytes * headroom > bytes) throw new Error(`--size is too small: ${inWords(movedBytes)} must be moved`);
  const { bsize, bavail } = await statfs(folder);
  if (bytes > bsize * bavail) {
    throw new Error(`--size is more than the ${inWords(bsize * bavail)} that are free: the file grows as it is used`);
  }
  const projects = (await readdir(join(home, 'projects')).catch(() => [])).length;
  const { image, point: mountPoint } = storagePaths(home);
  return { image, mountPoint, bytes, movedBytes, projects };
}

export async function createStorage(
  config: Pick<Config, 'home' | 'uids'>,
  bytes: number,
  say: (line: string) => void,
): Promise<void> {
  const { home } = config;
  await ensureHome(config);
  const lock = await takeInstanceLock(join(home, 'catnap.sock'), home);
  try {
    // Checked again, now that no Catnap can start.
    await planStorage(config, bytes);
    if (await removeUncommitted(home)) say('an image that was never finished is removed');
    try {
      const record = await makeStorage(home, bytes);
      const { image, point } = storagePaths(home);
      say(`made ${image} and mounted it on ${point}`);
      for (const name of movedFolders) await copyFolder(join(home, name), join(point, name), say);
      await commitStorage(home, record);
      await finishMove(home, record);
    } catch (error) {
      if (!(await readStorageRecord(home))) await removeUncommitted(home);
      throw error;
    }
    say('everything is in the image now');
  } finally {
    await lock.release();
  }
}

/** Copies owners, modes and times too. A link leads elsewhere on purpose, and its target stays there. */
async function copyFolder(from: string, to: string, say: (line: string) => void): Promise<void> {
  const found = await lstat(from).catch(() => null);
  if (!found?.isDirectory()) {
    await mkdir(to, { mode: 0o700 });
    return;
  }
  say(`copying ${from}`);
  await runProgram('cp', ['-a', '--', from, to]);
}

async function folderBytes(path: string): Promise<number> {
  const found = await lstat(path).catch(() => null);
  if (!found?.isDirectory()) return 0;
  return Number.parseInt(await runProgram('du', ['-s', '-B1', '--', path]), 10);
}
