/**
 * Disks of computes that have fallen asleep, on their way out. Unmounting one writes its filesystem back and may take
 * longer than the stop of a server, so nobody waits for it: the folder of the disk is renamed out of the endpoint's
 * directory, and the rest happens here, one disk at a time. What a killed Catnap leaves of it is cleared away by the
 * next one.
 */
import { randomBytes } from 'node:crypto';
import { realpathSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Layout } from '../home/layout.ts';
import { unmountUnder } from './mounts.ts';

export type DiskLog = (error: unknown, message: string) => void;

export class ReleasedDisks {
  readonly #layout: Layout;
  readonly #log: DiskLog;
  readonly #folders = new Set<string>();
  #work: Promise<void> = Promise.resolve();

  constructor(layout: Layout, log: DiskLog) {
    this.#layout = layout;
    this.#log = log;
  }

  /** False, with nothing done, when the folder is not there or cannot be moved. */
  take(folder: string): boolean {
    let resting: string;
    try {
      // The real path, which is how the kernel lists mounts. No tenant can enter it.
      resting = join(realpathSync(this.#layout.trash), `disk-${randomBytes(6).toString('hex')}`);
      // The mount moves with the folder above it.
      renameSync(folder, resting);
    } catch {
      return false;
    }
    this.#folders.add(resting);
    this.#work = this.#work.then(() => this.#remove(resting));
    return true;
  }

  /** Whether a mount belongs to a disk that is about to be unmounted here. */
  owns(point: string): boolean {
    return this.#folders.has(dirname(point));
  }

  whenGone(): Promise<void> {
    return this.#work;
  }

  async #remove(folder: string): Promise<void> {
    await unmountUnder(folder)
      .then(() => rm(folder, { recursive: true, force: true }))
      .catch((error: unknown) => this.#log(error, 'the disk of a sleeping compute could not be removed yet'));
    this.#folders.delete(folder);
  }
}
