/** A filesystem of a chosen kind and size for a test, in a sparse file on a loop device. Root alone can have one. */
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryDiskImages } from '../../src/compute/local/host/disks/image.ts';
import { unmountUnder } from '../../src/compute/local/host/disks/mounts.ts';
import { runProgram } from '../../src/lib/run-program.ts';

export type DiskKind = 'xfs' | 'btrfs' | 'ext4';

const makers: Readonly<Record<DiskKind, readonly string[]>> = {
  xfs: ['/usr/sbin/mkfs.xfs', '-q', '-m', 'reflink=1'],
  btrfs: ['/usr/sbin/mkfs.btrfs', '-q', '-m', 'single'],
  ext4: ['/usr/sbin/mkfs.ext4', '-q', '-m', '0'],
};

export interface LoopDisk {
  /** Everybody may pass through it, as servers of tenants must. */
  readonly path: string;
  /** What the filesystem says is in use, after everything was written out. */
  usedBytes(): Promise<number>;
  /** Shows the disk as it would be found after a power cut at this moment. */
  afterPowerCut<T>(look: (path: string) => Promise<T>): Promise<T>;
  remove(): Promise<void>;
}

/** Why there can be none here, said once for each kind; null when there can. */
export async function whyNoLoopDisk(kind: DiskKind): Promise<string | null> {
  const problem = process.getuid?.() === 0 ? await tryDiskImages(tmpdir()) : 'only root can mount';
  const [maker = ''] = makers[kind];
  const missing = problem ?? (existsSync(maker) ? null : `${maker} is not installed`);
  if (missing !== null) process.stderr.write(`NOT TESTED here: branches on ${kind} (${missing})\n`);
  return missing;
}

export async function makeLoopDisk(kind: DiskKind, bytes: number): Promise<LoopDisk> {
  const place = await mkdtemp(join(tmpdir(), 'cd-'));
  await chmod(place, 0o711);
  const [image, path] = [join(place, 'image'), join(place, 'd')];
  const handle = await open(image, 'wx', 0o600);
  await handle.truncate(bytes);
  await handle.close();
  const [maker = '', ...args] = makers[kind];
  await runProgram(maker, [...args, image]);
  await mkdir(path);
  await runProgram('mount', ['-t', kind, '-o', 'loop,noatime', image, path]);
  await chmod(path, 0o711);
  return {
    path,
    usedBytes: async () => {
      await runProgram('sync', ['-f', path]);
      const { bsize, blocks, bfree } = await statfs(path);
      return bsize * (blocks - bfree);
    },
    afterPowerCut: async (look) => {
      const [cut, found] = [join(place, 'cut'), join(place, 'c')];
      // What was written to the device is in its file by now; what the filesystem still has in memory is not.
      await runProgram('cp', ['--sparse=always', image, cut]);
      await mkdir(found);
      // The disk that goes on has the same id.
      await runProgram('mount', ['-t', kind, '-o', kind === 'xfs' ? 'loop,nouuid' : 'loop', cut, found]);
      try {
        return await look(found);
      } finally {
        await unmountUnder(found);
        await rm(found, { recursive: true });
        await rm(cut);
      }
    },
    remove: async () => {
      await unmountUnder(place);
      await rm(place, { recursive: true, force: true });
    },
  };
}

const mebibyte = 1024 ** 2;

/**
 * A disk whose writes fail: it claims more room than there is behind it. Files can be written all the same, and only a
 * sync reports that their data did not reach the disk.
 */
export async function makeFailingDisk(): Promise<Pick<LoopDisk, 'path' | 'remove'>> {
  const place = await mkdtemp(join(tmpdir(), 'cd-'));
  const [behind, path] = [join(place, 'b'), join(place, 'd')];
  for (const folder of [behind, path]) await mkdir(folder);
  await runProgram('mount', ['-t', 'tmpfs', '-o', `size=${24 * mebibyte}`, 'tmpfs', behind]);
  const image = join(behind, 'image');
  const handle = await open(image, 'wx', 0o600);
  await handle.truncate(200 * mebibyte);
  await handle.close();
  // With a journal the filesystem would end all writes at the first failure.
  const [maker = '', ...args] = makers.ext4;
  await runProgram(maker, [...args, '-O', '^has_journal', image]);
  await runProgram('mount', ['-t', 'ext4', '-o', 'loop,noatime,errors=continue', image, path]);
  return {
    path,
    remove: async () => {
      await unmountUnder(place);
      await rm(place, { recursive: true, force: true });
    },
  };
}
