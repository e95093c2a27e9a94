/**
 * How much room the disk has, and what is made of it. Below a mark tenants' writes are turned off, below half of it the
 * sessions that write all the same are ended. The ballast is a file that only takes room: given up when the disk is
 * full, it is what the system database goes on with while people delete things.
 */
import { statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { RoomObservation } from '../../../interface/measures.ts';
import type { Layout } from './layout.ts';

const mebibyte = 1024 ** 2;
const lowBytesMax = 1024 * mebibyte;
const ballastBytesMax = 64 * mebibyte;

export interface Space {
  readonly total: number;
  readonly free: number;
}

export type ReadSpace = (folder: string) => Promise<Space>;

export const readSpace: ReadSpace = async (folder) => {
  const { bsize, blocks, bavail } = await statfs(folder);
  return { total: bsize * blocks, free: bsize * bavail };
};

/** What is left to the servers: a twentieth of the disk and at most 1 GiB; of a small disk more, up to 128 MiB. */
export function lowMark(total: number): number {
  return Math.min(lowBytesMax, Math.max(total * 0.05, Math.min(128 * mebibyte, total * 0.15)));
}

/** Writes come back some way above the mark at which they are turned off, so that they do not flap. */
const enoughMark = (total: number) => lowMark(total) * 1.25;

const lookMsMin = 250;
const lookMsMax = 2_000;
/** More than a fast disk takes in a second. */
const bytesPerMsMax = 4 * mebibyte;

/** When to look again at a disk that has this much more than it must have: before that can be gone. */
export const lookAgainMs = (spareBytes: number) => Math.min(lookMsMax, Math.max(lookMsMin, spareBytes / bytesPerMsMax));

export const ballastFile = ({ home }: Pick<Layout, 'home'>) => join(home, 'ballast');

export const ballastBytes = (total: number) =>
  Math.floor(Math.min(ballastBytesMax, total * 0.05) / mebibyte) * mebibyte;

/** What the ballast takes at present. */
export function ballastHeld(layout: Pick<Layout, 'home'>): number {
  return (statSync(ballastFile(layout), { throwIfNoEntry: false })?.blocks ?? 0) * 512;
}

/** Free space of the home's disk, without what the ballast has given up and will take again. */
export async function freeOfHome(layout: Pick<Layout, 'home'>, read: ReadSpace): Promise<Space> {
  const { total, free } = await read(layout.home);
  const missing = Math.max(0, ballastBytes(total) - ballastHeld(layout));
  return { total, free: Math.max(0, free - missing) };
}

/** Watches the disk of the home, and that of the data where it is another one: the fuller of the two counts. */
export class RoomWatch {
  readonly #layout: Pick<Layout, 'home' | 'root'>;
  readonly #read: ReadSpace;
  #wasEnough = true;

  constructor(layout: Pick<Layout, 'home' | 'root'>, read: ReadSpace = readSpace) {
    this.#layout = layout;
    this.#read = read;
  }

  async observe(): Promise<RoomObservation> {
    const { home, root } = this.#layout;
    const disks = [await freeOfHome(this.#layout, this.#read)];
    if (root !== home) disks.push(await this.#read(root));
    const fullness = ({ total, free }: Space) => free / lowMark(total);
    const { total, free } = disks.reduce((a, b) => (fullness(b) < fullness(a) ? b : a));
    const level = this.#levelOf(total, free);
    this.#wasEnough = level === 'enough';
    return { level, freeBytes: free, lowBytes: lowMark(total) };
  }

  #levelOf(total: number, free: number): RoomObservation['level'] {
    const mark = this.#wasEnough ? lowMark(total) : enoughMark(total);
    if (free >= mark) return 'enough';
    return free < lowMark(total) / 2 ? 'critical' : 'low';
  }
}
