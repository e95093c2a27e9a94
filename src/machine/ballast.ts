/**
 * The ballast: a file in the data home that takes room and holds nothing. Half of it is given up before the disk is
 * full, so that the system database can write what it takes to delete things. A program that goes on writing takes that
 * too and fails then, which ends most of them: the other half is given up a moment after. All of it is taken back when
 * there is room again. What tenants may use does not count it, whether it is there or not.
 */
import { open, truncate } from 'node:fs/promises';
import type { Layout } from '../compute/local/host/home/layout.ts';
import {
  ballastBytes,
  ballastFile,
  ballastHeld,
  lookAgainMs,
  lowMark,
  type ReadSpace,
  readSpace,
} from '../compute/local/host/home/room.ts';
import { delay } from '../lib/clock.ts';
import { errorText } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';

const chunkBytes = 1024 * 1024;
/** A disk with less than this has no room: a filesystem needs some of it to take account of new files. */
const emptyBytes = 4 * chunkBytes;
const emptyForMs = 1_000;

export interface Ballast {
  stop(): Promise<void>;
}

/** When it returns, a disk that is full already has what the ballast took. */
export async function keepBallast(layout: Layout, log: Logger, read: ReadSpace = readSpace): Promise<Ballast> {
  const stopping = new AbortController();
  await giveUpIfFull(layout, log, read, Number.POSITIVE_INFINITY);
  const watching = watch(layout, log, read, stopping.signal);
  return {
    stop: async () => {
      stopping.abort();
      await watching;
    },
  };
}

async function watch(layout: Layout, log: Logger, read: ReadSpace, signal: AbortSignal): Promise<void> {
  let hadRoomAt = performance.now();
  while (!signal.aborted) {
    let spareBytes = 0;
    try {
      const space = await read(layout.home);
      const readOnce = async () => space;
      if (space.free >= emptyBytes) hadRoomAt = performance.now();
      const emptySinceMs = performance.now() - hadRoomAt;
      if (!(await giveUpIfFull(layout, log, readOnce, emptySinceMs)))
        await takeBackIfRoom(layout, log, readOnce, signal);
      spareBytes = space.free - lowMark(space.total);
    } catch (error) {
      log.error({ reason: errorText(error) }, 'the ballast could not be looked after');
    }
    await delay(lookAgainMs(spareBytes), signal);
  }
}

/** False while there is room for all of it. `emptySinceMs` is how long the disk has had no room at all. */
export async function giveUpIfFull(
  layout: Layout,
  log: Logger,
  read: ReadSpace,
  emptySinceMs: number,
): Promise<boolean> {
  const { total, free } = await read(layout.home);
  if (free >= ballastBytes(total)) return false;
  const kept = emptySinceMs < emptyForMs ? ballastBytes(total) / 2 : 0;
  const held = ballastHeld(layout);
  if (held <= kept) return true;
  await truncate(ballastFile(layout), kept);
  const facts = { freeBytes: free, bytes: held - kept };
  log.error(facts, 'the disk is full: ballast is given up, so that things can be deleted');
  return true;
}

/** Takes back as much as leaves tenants what they may use. */
export async function takeBackIfRoom(
  layout: Layout,
  log: Logger,
  read: ReadSpace,
  signal?: AbortSignal,
): Promise<void> {
  const { total, free } = await read(layout.home);
  const held = ballastHeld(layout);
  const missing = ballastBytes(total) - held;
  if (missing < chunkBytes || free - missing < lowMark(total)) return;
  await write(ballastFile(layout), ballastBytes(total), signal);
  if (signal?.aborted !== true) log.info({ bytes: ballastBytes(total) }, 'the ballast is in its place');
}

/** Written, not just made long: a hole takes no room. */
async function write(path: string, bytes: number, signal?: AbortSignal): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    const chunk = Buffer.alloc(chunkBytes, 'catnap ballast\n');
    for (let at = 0; at < bytes && signal?.aborted !== true; at += chunkBytes)
      await file.write(chunk, 0, chunkBytes, at);
    await file.sync();
  } finally {
    await file.close();
  }
}
