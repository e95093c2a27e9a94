/**
 * Log segments that the system database will need next, made before it needs them. A server that finds no room for its
 * next segment ends at once, and cannot start again before there is some; one that finds the segment there uses it.
 * Postgres itself renames old segments in the same way, so their number stays once they are made.
 */
import { chown, link, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isSegment, parseSegment, segmentBytes, segmentName } from '../compute/local/host/postgres/wal-segments.ts';

const spares = 3;
const size = Number(segmentBytes);
const makingName = 'catnap-spare.tmp';

/** `current` is the segment that is being written; the server may run meanwhile. Returns how many were made. */
export async function makeSpareLog(dataDirectory: string, current: string, uid: number | null): Promise<number> {
  const folder = join(dataDirectory, 'pg_wal');
  const { timeline, at } = parseSegment(current);
  const there = new Set((await readdir(folder)).filter(isSegment));
  let made = 0;
  for (let next = at + 1; next <= at + spares; next++) {
    const name = segmentName(timeline, next);
    if (there.has(name)) continue;
    if (await makeSegment(folder, name, uid)) made++;
  }
  return made;
}

/** By a link, which fails where the server has made the segment in the meantime. */
async function makeSegment(folder: string, name: string, uid: number | null): Promise<boolean> {
  const making = join(folder, makingName);
  try {
    const file = await open(making, 'w', 0o600);
    try {
      const zeros = Buffer.alloc(1024 * 1024);
      for (let at = 0; at < size; at += zeros.length) await file.write(zeros, 0, zeros.length, at);
      await file.sync();
    } finally {
      await file.close();
    }
    if (uid !== null) await chown(making, uid, uid);
    await link(making, join(folder, name));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(making, { force: true });
  }
}
