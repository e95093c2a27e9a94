/**
 * Copies the write-ahead log out of a server's directory. What is before a flushed position never changes, so a copy of
 * the newest segment grows by the bytes that are new. The server must not reuse a segment meanwhile, which a slot sees
 * to; whether one was reused all the same is checked after the copy.
 */
import { constants } from 'node:fs';
import { copyFile, type FileHandle, lstat, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lsnBytes, lsnText } from '../../../../lib/moments.ts';
import type { LogEnd } from '../../channel/host-calls.ts';
import { segmentBytes, segmentName } from '../postgres/wal-segments.ts';
import { makeReadable } from './files.ts';

export interface LogRange {
  readonly timeline: number;
  readonly from: bigint;
  readonly to: bigint;
}

export interface LogCopy {
  /** `pg_wal` of the server. */
  readonly source: string;
  readonly target: string;
  /** The uid that owns the source; null when it is our own. */
  readonly sourceOwner: number | null;
  /** Who may read the copy. */
  readonly group: number | null;
}

/** The server no longer has what was to be copied. */
export class LogLostError extends Error {
  constructor(segment: string) {
    super(`the log segment ${segment} is gone`);
    this.name = 'LogLostError';
  }
}

const chunkBytes = 1_048_576;
const segmentSize = Number(segmentBytes);

/** Durable when it returns. Repeating it after a kill anywhere is harmless. */
export async function copyLog(copy: LogCopy, { timeline, from, to }: LogRange): Promise<void> {
  for (let at = from / segmentBytes; at * segmentBytes < to; at++) {
    const begin = at * segmentBytes;
    const range = {
      from: Number(from > begin ? from - begin : 0n),
      to: Number(to - begin > segmentBytes ? segmentBytes : to - begin),
    };
    await copySegment(copy, segmentName(timeline, Number(at)), begin, range);
  }
}

interface SegmentRange {
  readonly from: number;
  readonly to: number;
}

async function copySegment(copy: LogCopy, name: string, begin: bigint, range: SegmentRange): Promise<void> {
  const [from, to] = [join(copy.source, name), join(copy.target, name)];
  const source = await openSegment(from, name, copy.sourceOwner);
  try {
    await requireBeginning(source, name, begin);
    const had = (await stat(to).catch(() => null))?.size ?? 0;
    // A copy that is shorter than it should be is made again from where it ends.
    const start = Math.min(had, range.from);
    if (start === 0 && range.to === segmentSize) await copyWhole(source, from, to, copy.group);
    else await copyPart(source, to, { from: start, to: range.to }, copy.group);
    const { ino } = await source.stat();
    // Reused meanwhile: the file was given another name before it was written to again.
    if ((await lstat(from).catch(() => null))?.ino !== ino) throw new LogLostError(name);
  } finally {
    await source.close();
  }
}

async function openSegment(path: string, name: string, owner: number | null): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new LogLostError(name);
    throw error;
  });
  const facts = await handle.stat();
  if (facts.isFile() && facts.nlink === 1 && facts.uid === (owner ?? facts.uid) && facts.size === segmentSize)
    return handle;
  await handle.close();
  throw new Error(`not a log segment of uid ${owner ?? 'its owner'}: ${path}`);
}

/** The first page names its position: a segment that was set aside for later still has that of its earlier life. */
async function requireBeginning(source: FileHandle, name: string, begin: bigint): Promise<void> {
  const header = Buffer.alloc(16);
  await source.read(header, 0, 16, 0);
  const found = header.readBigUInt64LE(8);
  if (found !== begin) throw new Error(`the log segment ${name} begins at ${lsnText(found)}, not ${lsnText(begin)}`);
}

/** Shares the blocks where the filesystem can. Also in the place of a shorter copy, which others may read. */
async function copyWhole(source: FileHandle, from: string, to: string, group: number | null): Promise<void> {
  const making = `${to}.new`;
  const name = process.platform === 'linux' ? `/proc/self/fd/${source.fd}` : from;
  await copyFile(name, making, constants.COPYFILE_FICLONE);
  const handle = await open(making, 'r+');
  try {
    await handle.chmod(0o600);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  makeReadable(making, 0o640, group);
  await rename(making, to);
}

async function copyPart(
  source: FileHandle,
  to: string,
  { from, to: end }: SegmentRange,
  group: number | null,
): Promise<void> {
  const target = await open(to, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    // Before there is anything to read.
    if (from === 0) makeReadable(to, 0o640, group);
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, end - from));
    for (let at = from; at < end; ) {
      const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, end - at), at);
      if (bytesRead === 0) throw new Error(`the log ended before byte ${end} of ${to}`);
      await target.write(buffer, 0, bytesRead, at);
      at += bytesRead;
    }
    await target.datasync();
  } finally {
    await target.close();
  }
}

/** The end of the log that was written, but not of the next segment, which may not exist. */
export function withinSegment(to: bigint, beyond: bigint): bigint {
  const end = (to / segmentBytes + 1n) * segmentBytes;
  return to + beyond < end ? to + beyond : end;
}

export function requireLogEnd(end: LogEnd): void {
  lsnBytes(end.lsn);
  if (!Number.isInteger(end.timeline) || end.timeline < 1 || Number.isNaN(Date.parse(end.at))) {
    throw new Error('not a position in the log');
  }
}
