/**
 * Disks for temporary files that are mounted before they are needed: making and mounting one takes as much CPU as half
 * a start of Postgres, just when a client waits for that start. Taking one renames the folder that it is mounted in.
 * Some of the size requested last are made ahead of time; before the first request there are none. The disk of a
 * compute that falls asleep is kept for a while, for the same tenant alone, so that computes which wake together all
 * find theirs.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, readdirSync, realpathSync, renameSync } from 'node:fs';
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

/** An empty disk takes a loop device, and 0.3 MB of the machine's disk. */
const usualLimits = { mostKept: 64, keptMs: 300_000 };

interface SpareDisk {
  readonly folder: string;
  readonly bytes: number;
  /** The tenant that had it; null for one that is new. */
  readonly uid: number | null;
  readonly expiry?: NodeJS.Timeout;
}

export class SpareDisks {
  readonly #folder: string;
  readonly #count: number;
  readonly #refillDelayMs: number;
  readonly #limits: typeof usualLimits;
  readonly #ready: SpareDisk[] = [];
  /** Those that are ready, and the one that is being made. Disks left by a killed Catnap are not included. */
  readonly #folders = new Set<string>();
  #work: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #wantedBytes = 0;
  #closed = false;

  /** No tenant can enter `folder`, which is on the filesystem that disks are moved to. A count of 0 keeps no disks. */
  constructor(folder: string, count: number, refillDelayMs = usualDelayMs, limits = usualLimits) {
    this.#folder = folder;
    this.#count = count;
    this.#refillDelayMs = refillDelayMs;
    this.#limits = limits;
  }

  /** Moves one to `target`, which must not exist, and gives it to `uid`; false when there is none of that size. */
  take(target: string, uid: number, bytes: number): boolean {
    if (this.#count === 0 || this.#closed) return false;
    this.#wantedBytes = bytes;
    // A later start does not postpone it: with a start every half second no disk would ever be made.
    this.#timer ??= setTimeout(() => this.#refill(), this.#refillDelayMs).unref();
    const fits = (owner: number | null) => (disk: SpareDisk) => disk.uid === owner && disk.bytes === bytes;
    const disk = this.#ready.find(fits(uid)) ?? this.#ready.find(fits(null));
    if (disk === undefined) return false;
    this.#withdraw(disk);
    try {
      // The mount moves with the folder above it. All steps come before the tenant can reach the disk.
      chownSync(join(disk.folder, pointName), uid, uid);
      chmodSync(join(disk.folder, pointName), 0o700);
      renameSync(disk.folder, target);
      this.#folders.delete(disk.folder);
      return true;
    } catch {
      this.#drop(disk);
      return false;
    }
  }

  /** Keeps the disk in `folder` for the tenant whose server had it and has ended. False, with nothing done, if not. */
  keep(folder: string): boolean {
    if (this.#count === 0 || this.#closed) return false;
    try {
      const point = lstatSync(join(folder, pointName));
      const isMounted = point.dev !== lstatSync(folder).dev;
      // What a server that crashed has left there is not worth sorting out.
      if (!isMounted || readdirSync(join(folder, pointName)).length > 0) return false;
      const bytes = lstatSync(join(folder, imageName)).size;
      const kept = join(realpathSync(this.#folder), `${spareDiskPrefix}${randomBytes(6).toString('hex')}`);
      renameSync(folder, kept);
      this.#folders.add(kept);
      const expiry = setTimeout(() => this.#drop(disk), this.#limits.keptMs).unref();
      const disk: SpareDisk = { folder: kept, bytes, uid: point.uid, expiry };
      this.#ready.push(disk);
    } catch {
      return false;
    }
    const ofTenants = this.#ready.filter(({ uid }) => uid !== null);
    for (const oldest of ofTenants.slice(0, -this.#limits.mostKept)) this.#drop(oldest);
    return true;
  }

  /** Nothing that a tenant had is kept for the next one that gets its uid. Resolves when it is gone. */
  async forget(tenant: number): Promise<void> {
    for (const disk of this.#ready.filter(({ uid }) => uid === tenant)) this.#drop(disk);
    await this.#work;
  }

  /** Whether a mount belongs to a disk that is kept here, or is being made. */
  owns(point: string): boolean {
    return this.#folders.has(dirname(point));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#work;
    for (const disk of [...this.#ready]) this.#drop(disk);
    await this.#work;
  }

  /** Makes one at a time. A failure is retried after the next start, which makes its own disk and logs the reason. */
  #refill(): void {
    this.#timer = undefined;
    const bytes = this.#wantedBytes;
    this.#work = this.#work.then(async () => {
      const news = () => this.#ready.filter(({ uid }) => uid === null);
      for (const disk of news().filter((one) => one.bytes !== bytes)) {
        this.#withdraw(disk);
        await this.#discard(disk);
      }
      while (!this.#closed && news().length < this.#count) {
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
      return { folder, bytes, uid: null };
    } catch {
      await this.#discard({ folder });
      return null;
    }
  }

  #withdraw(disk: SpareDisk): void {
    clearTimeout(disk.expiry);
    this.#ready.splice(this.#ready.indexOf(disk), 1);
  }

  #drop(disk: SpareDisk): void {
    if (this.#ready.includes(disk)) this.#withdraw(disk);
    this.#work = this.#work.then(() => this.#discard(disk));
  }

  /** If the disk is stuck, the next start of Catnap clears it away. */
  async #discard({ folder }: Pick<SpareDisk, 'folder'>): Promise<void> {
    await unmountUnder(folder)
      .then(() => rm(folder, { recursive: true, force: true }))
      .catch(() => undefined);
    this.#folders.delete(folder);
  }
}
