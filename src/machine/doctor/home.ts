/** Checks the data home: its owner, which users may pass, what its filesystem can do. Creates nothing permanent. */
import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { detectCloneMethod } from '../../compute/local/host/copy/method.ts';
import { tryDiskImages } from '../../compute/local/host/disks/image.ts';
import { findStorageRoot, readStorageRecord } from '../../compute/local/host/disks/storage-image.ts';
import type { Config } from '../../lib/config.ts';
import { fullCopyAdvice } from '../storage/advice.ts';
import { type Check, fail, ok, warn } from './check.ts';

const gibibyte = 1024 ** 3;
const freeBytesWarn = 5 * gibibyte;
/** Binaries of two majors, two templates and the system database take about 0.5 GiB. */
const freeBytesFail = gibibyte;

export async function checkHome({ home, uids }: Pick<Config, 'home' | 'uids'>): Promise<Check> {
  const closed = uids === null ? undefined : await closedParent(home);
  if (closed !== undefined) {
    const advice = `servers run under uids of their own and must pass: chmod o+x ${closed}, or set CATNAP_HOME`;
    return fail('data home', `${home}: other users cannot pass through ${closed}`, advice);
  }
  const found = await stat(home).catch(() => null);
  if (found === null) return checkFutureHome(home);
  if (!found.isDirectory()) return fail('data home', `${home} is not a directory`, 'set CATNAP_HOME to a directory');
  const own = process.getuid?.() ?? found.uid;
  if (found.uid !== own) {
    const advice = 'start Catnap as that user, or set CATNAP_HOME to a directory of your own';
    return fail('data home', `${home} belongs to uid ${found.uid}, you are ${own}`, advice);
  }
  return ok('data home', `${home}, mode ${(found.mode & 0o7777).toString(8)}`);
}

async function checkFutureHome(home: string): Promise<Check> {
  const parent = await nearestFolder(home);
  const isWritable = await access(parent, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (isWritable) return ok('data home', `${home} will be made`);
  return fail('data home', `${home} cannot be made: ${parent} is not writable`, 'set CATNAP_HOME to another place');
}

async function closedParent(home: string): Promise<string | undefined> {
  for (let path = dirname(home); path !== dirname(path); path = dirname(path)) {
    const found = await stat(path).catch(() => null);
    if (found && (found.mode & 0o001) === 0) return path;
  }
  return undefined;
}

export async function checkFreeDisk(home: string): Promise<Check> {
  const { bsize, bavail } = await statfs(await nearestFolder(await findStorageRoot(home)));
  return judgeFreeDisk(bsize * bavail);
}

export function judgeFreeDisk(bytes: number): Check {
  const detail = `${(bytes / gibibyte).toFixed(1)} GiB`;
  if (bytes < freeBytesFail)
    return fail('free disk', detail, 'free at least 1 GiB, or set CATNAP_HOME to another disk');
  if (bytes < freeBytesWarn) return warn('free disk', detail, 'a project takes about 40 MB from its first minute on');
  return ok('free disk', detail);
}

/** How branches are copied, tried out where they are made. */
export async function checkReflinks(home: string): Promise<Check> {
  const name = 'reflinks';
  const root = await findStorageRoot(home);
  const isAway = root === home && (await readStorageRecord(home)) !== null;
  if (isAway) return ok(name, 'branches are in storage.img, which is mounted when Catnap starts');
  const folder = await nearestFolder(root);
  const method = await detectCloneMethod(folder);
  if (method === null) return warn(name, `${folder} is not writable`, 'run this as the user who starts Catnap');
  if (method === 'reflink') return ok(name, 'branches share the blocks of their parent (method: reflink)');
  return warn(name, 'this filesystem cannot share blocks (method: copy)', fullCopyAdvice(process.getuid?.() === 0));
}

/** Also tried out: a disk of its own for each compute's temporary files. */
export async function checkTemporaryDisk({ home, uids }: Pick<Config, 'home' | 'uids'>): Promise<Check> {
  const name = 'temporary disk';
  const less = 'temporary files are limited for each session, not for each compute';
  if (uids === null) return warn(name, less, 'start Catnap as root to give each compute a disk of its own');
  const problem = await tryDiskImages(await nearestFolder(home));
  if (problem === null) return ok(name, 'each compute gets a disk of its own');
  return warn(name, `${less}: ${problem}`, 'install mkfs.ext4 (e2fsprogs), and allow loop devices and mounts');
}

async function nearestFolder(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  return found?.isDirectory() || path === dirname(path) ? path : nearestFolder(dirname(path));
}
