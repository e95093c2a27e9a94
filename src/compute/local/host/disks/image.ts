/**
 * A small filesystem of a given size in one file: made, mounted, tried out. The file is sparse, so an empty disk of 20
 * GiB takes 0.3 MB, and space that is freed on it returns to the machine at once.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, open, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../../../../lib/errors.ts';
import { runProgram } from '../../../../lib/run-program.ts';
import { unmount } from './mounts.ts';

/** The superuser's programs, in directories that are not in our search path. */
const makers = ['/usr/sbin/mkfs.ext4', '/sbin/mkfs.ext4', '/usr/local/sbin/mkfs.ext4'];
const bytesPerInode = 262_144;
const inodesMin = 256;
const probeBytes = 1_048_576;
/** Of a disk that is only tried out. */
export const probePrefix = '.disk-';

export interface DiskImage {
  readonly file: string;
  readonly bytes: number;
  /** The owner of its top directory. */
  readonly uid: number;
}

/**
 * No journal and nothing for growing: the disk is new each time, so it has nothing to recover. Inode tables stay
 * unwritten (`noinit_itable` below keeps the kernel from filling them later). 5 ms for 20 GiB.
 */
export async function makeDiskImage({ file, bytes, uid }: DiskImage): Promise<void> {
  const maker = makers.find((path) => existsSync(path));
  if (maker === undefined) throw new Error('mkfs.ext4 is not installed');
  await rm(file, { force: true });
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.truncate(bytes);
  } finally {
    await handle.close();
  }
  const inodes = Math.min(Math.max(inodesMin, Math.ceil(bytes / bytesPerInode)), 2 ** 32 - 1);
  await runProgram(maker, [
    '-q',
    '-F',
    '-m',
    '0',
    '-N',
    String(inodes),
    '-O',
    '^has_journal,^resize_inode',
    '-E',
    `lazy_itable_init=1,nodiscard,root_owner=${uid}:${uid}`,
    file,
  ]);
}

/** The loop device is freed with the mount. `point` must be out of the tenant's reach. */
export async function mountDiskImage(file: string, point: string): Promise<void> {
  await mkdir(point, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const options = 'loop,nosuid,nodev,noexec,noatime,discard,noinit_itable';
  await runProgram('mount', ['-t', 'ext4', '-o', options, file, point]);
  await chmod(point, 0o700);
  // Postgres would log it as unexpected at each start.
  await rmdir(join(point, 'lost+found')).catch(() => undefined);
}

/** Null when disks can be made here, otherwise why not. Tried, not guessed: containers refuse in many ways. */
export async function tryDiskImages(folder: string): Promise<string | null> {
  if (process.platform !== 'linux') return 'only Linux has loop devices';
  const directory = await mkdtemp(join(folder, probePrefix)).catch(() => null);
  if (directory === null) return `${folder} is not writable`;
  const point = join(directory, 'disk');
  try {
    const file = join(directory, 'image');
    await makeDiskImage({ file, bytes: probeBytes, uid: process.getuid?.() ?? 0 });
    await mountDiskImage(file, point);
    await unmount(point);
    return null;
  } catch (error) {
    return errorText(error);
  } finally {
    // If the disk is stuck or Catnap is killed, its next start clears it away.
    await rm(directory, { recursive: true, force: true }).catch(() => undefined);
  }
}
