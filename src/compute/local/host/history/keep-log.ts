/** Keeps the log of a history up to date: from where it was copied last to a position that the server has flushed. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lsnBytes, lsnText } from '../../../../lib/moments.ts';
import type { BranchRef } from '../../../interface/driver.ts';
import type { LogEnd } from '../../channel/host-calls.ts';
import { readControlFile } from '../postgres/control-file.ts';
import { segmentBytes, segmentName } from '../postgres/wal-segments.ts';
import { enterTimeline } from './begin.ts';
import { copyLog, LogLostError, withinSegment } from './copy-log.ts';
import {
  appendMark,
  type BaseRecord,
  type HistoryPaths,
  type HistoryState,
  notBefore,
  readState,
  writeState,
} from './files.ts';

/** The log of a data directory, and where its copy is. */
export interface KeptLog extends Pick<BranchRef, 'branchId' | 'tenantUid'> {
  readonly data: string;
  readonly paths: HistoryPaths;
  readonly group: number | null;
}

/** The shutdown record, behind which nothing was written. */
const recordBytesMax = 8_192n;

/** The rest of the log of a server that was shut down. */
export async function copyAsleep(log: KeptLog): Promise<void> {
  const state = await readState(log.paths);
  const control = await readControlFile(log.data).catch(() => null);
  if (state?.copied == null || !control?.shutDown) return;
  if (control.timeline === state.timeline && lsnBytes(state.copied.lsn) >= control.checkpoint) return;
  const at = control.writtenAt.toISOString();
  await copyUpTo(log, { timeline: control.timeline, lsn: control.checkpointLsn, at }, recordBytesMax);
}

/**
 * Returns the position that it has reached; null when there is nothing to continue, or the log was lost. `beyond` bytes
 * are copied too, and copied again when the log continues.
 */
export async function copyUpTo(log: KeptLog, end: LogEnd, beyond = 0n): Promise<string | null> {
  const { branchId, tenantUid, data, paths, group } = log;
  const state = await readState(paths);
  if (state?.copied == null) return null;
  const [from, to] = [lsnBytes(state.copied.lsn), lsnBytes(end.lsn)];
  if (end.timeline === state.timeline && to < from) return state.copied.lsn;
  const position = { at: notBefore(state, end.at), lsn: lsnText(to) };
  const copy = { source: join(data, 'pg_wal'), target: paths.log, sourceOwner: tenantUid, group };
  try {
    const begin = end.timeline === state.timeline ? from : await enterTimeline(copy, end.timeline, state);
    await copyLog(copy, { timeline: end.timeline, from: begin, to: withinSegment(to, beyond) });
  } catch (error) {
    if (!(error instanceof LogLostError)) throw error;
    writeState(paths, { ...state, copied: null, lostSince: state.copied }, group);
    return null;
  }
  if (to === from && state.copied.at >= position.at) return position.lsn;
  writeState(paths, { ...state, branchId, timeline: end.timeline, copied: position }, group);
  await appendMark(paths, position, group);
  return position.lsn;
}

/** After an interruption the log is copied from a new base image on; what is missing before it is a gap. */
export function continuedFrom({ at, lsn, start, timeline }: BaseRecord, state: HistoryState): HistoryState {
  const { lostSince: from, gaps } = state;
  const known = from === null ? gaps : [...gaps, { from, until: { at, lsn } }];
  return { ...state, timeline, copied: { at, lsn: start }, lostSince: null, gaps: known };
}

/** So that a server that writes fast can reuse what was copied while the rest is. */
const pieceBytes = 16n * segmentBytes;

/** A shorter way to the same end, if that is far. When the log got there is not known, but not before its last copy. */
export async function firstPiece({ paths }: Pick<KeptLog, 'paths'>, end: LogEnd): Promise<LogEnd> {
  const state = await readState(paths);
  if (state?.copied == null || state.timeline !== end.timeline) return end;
  const to = lsnBytes(state.copied.lsn) + pieceBytes;
  return to < lsnBytes(end.lsn) ? { ...end, lsn: lsnText(to), at: state.copied.at } : end;
}

/** What was known of a log when it was copied. */
export interface SeenLog {
  /** As `newestWrite` says. */
  readonly writtenAt: number;
  /** All that was written before this time was copied. */
  readonly copiedBefore: number;
}

/** A file may be marked with a time that was over when it was written: the clock for this ticks once in 1 to 10 ms. */
const fileClockMs = 20;

/** `end` was read before `writtenAt`, and the server may have written in between. */
export function seenLog(writtenAt: number, end: LogEnd): SeenLog {
  return { writtenAt, copiedBefore: Date.parse(end.at) - fileClockMs };
}

/** Another time is a new write too if it is earlier: the clock may have been set back. */
export function isNewWrite(writtenAt: number, seen: SeenLog): boolean {
  return writtenAt !== seen.writtenAt || writtenAt >= seen.copiedBefore;
}

/** The server writes to the segment that was copied last, or has gone on to the next, or has left both behind. */
export async function newestWrite({ data, paths }: Pick<KeptLog, 'data' | 'paths'>): Promise<number> {
  const state = await readState(paths);
  if (state?.copied == null) return Number.POSITIVE_INFINITY;
  const at = Number(lsnBytes(state.copied.lsn) / segmentBytes);
  const writtenAt = (number: number, ifGone: number) =>
    stat(join(data, 'pg_wal', segmentName(state.timeline, number))).then(
      ({ mtimeMs }) => mtimeMs,
      () => ifGone,
    );
  return Math.max(await writtenAt(at, Number.POSITIVE_INFINITY), await writtenAt(at + 1, 0));
}
