/**
 * Disks for temporary files, made and mounted ahead of time: making and mounting one takes as much CPU as half a start
 * of Postgres, just when a client waits for that start. Taking one renames the folder that it is mounted in. Disks of
 * the size requested last are kept ready; before the first request there are none.
 */
import { chownSync, renameSync } from 'node:fs';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeDiskImage, mountDiskImage } from './image.ts';
import { unmountUnder } from './mounts.ts';

/** In the folder of a disk: the file, and its mount point. */
export const imageName = 'image';
export const pointName = 'temp';
export const spareDiskPrefix = '.spare-disk-';

/** By then the server that took one has started and served its first client. */
const usualDelayMs = 1_000;

interface SpareDisk {
  readonly folder: string;
  readonly bytes: number;
}

export class SpareDisks {
  readonly #folder: string;
  readonly #count: number;
  readonly #refillDelayMs: number;
  readonly #ready: SpareDisk[] = [];
  /** Those that are ready, and the one that is being made. Disks left by a killed Catnap are not included. */
  readonly #folders = new Set<string>();
  #work: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #wantedBytes = 0;
  #closed = false;

  /** No tenant can enter `folder`, which is on the filesystem that disks are moved to. A count of 0 keeps no disks. */
  constructor(folder: string, count: number, refillDelayMs = usualDelayMs) {
    this.#folder = folder;
    this.#count = count;
    this.#refillDelayMs = refillDelayMs;
  }

  /** Moves one to `target`, which must not exist, and gives it to `uid`; false when there is none of that size. */
  take(target: string, uid: number, bytes: number): boolean {
    if (this.#count === 0 || this.#closed) return false;
    this.#wantedBytes = bytes;
    // A later start does not postpone it: with a start every half second no disk would ever be made.
    this.#timer ??= setTimeout(() => this.#refill(), this.#refillDelayMs).unref();
    const index = this.#ready.findIndex((disk) => disk.bytes === bytes);
    const [disk] = index < 0 ? [] : this.#ready.splice(index, 1);
    if (disk === undefined) return false;
    try {
      this.#folders.delete(disk.folder);
      // The mount moves with the folder above it. Both steps come before the tenant can reach the disk.
      chownSync(join(disk.folder, pointName), uid, uid);
      renameSync(disk.folder, target);
      return true;
    } catch {
      this.#work = this.#work.then(() => this.#discard(disk));
      return false;
    }
  }

  /** Whether a mount belongs to a disk that is kept here, or is being made. */
  owns(point: string): boolean {
    return this.#folders.has(dirname(point));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#work;
    for (const disk of this.#ready.splice(0)) await this.#discard(disk);
  }

  /** Makes one at a time. A failure is retried after the next start, which makes its own disk and logs the reason. */
  #refill(): void {
    this.#timer = undefined;
    const bytes = this.#wantedBytes;
    this.#work = this.#work.then(async () => {
      const others = this.#ready.filter((disk) => disk.bytes !== bytes);
      for (const disk of others) {
        this.#ready.splice(this.#ready.indexOf(disk), 1);
        await this.#discard(disk);
      }
      while (!this.#closed && this.#ready.length < this.#count) {
        const disk = await this.#make(bytes);
        if (disk === null) return;
        this.#ready.push(disk);
      }
    });
  }

  async #make(bytes: number): Promise<SpareDisk | null> {
    // The real path, which is how the kernel lists mounts.
    const folder = await mkdtemp(join(this.#folder, spareDiskPrefix)).then(
      (path) => realpath(path),
      () => null,
    );
    if (folder === null) return null;
    this.#folders.add(folder);
    const file = join(folder, imageName);
    try {
      await chmod(folder, 0o711);
      await makeDiskImage({ file, bytes, uid: 0 });
      await mountDiskImage(file, join(folder, pointName));
      return { folder, bytes };
    } catch {
      await this.#discard({ folder, bytes });
      return null;
    }
  }

  /** If the disk is stuck, the next start of Catnap clears it away. */
  async #discard({ folder }: SpareDisk): Promise<void> {
    await unmountUnder(folder)
      .then(() => rm(folder, { recursive: true, force: true }))
      .catch(() => undefined);
    this.#folders.delete(folder);
  }
}
