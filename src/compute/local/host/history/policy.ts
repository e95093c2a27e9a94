/**
 * When a base image is made, and what of a history is given up. Pure. A base image shortens replay and lets older log
 * go; what it costs depends on the filesystem: a few milliseconds where blocks are shared, a whole copy elsewhere.
 */
import type { BranchHistory } from '../../../../lib/model.ts';
import { type LogPosition, lsnBytes } from '../../../../lib/moments.ts';
import { parseSegment, segmentBytes } from '../postgres/wal-segments.ts';
import type { BaseRecord, HistoryState } from './files.ts';

const megabyte = 1024 ** 2;

/** With shared blocks: so much log is replayed at most, some two seconds here. */
const sharedLogBytesMax = 512 * megabyte;
/** With copies: as much log as data, at least this and at most that; at 130 MB/s the most takes half a minute. */
const copiedLogBytesMin = 64 * megabyte;
const copiedLogBytesMax = 4_096 * megabyte;
/** A sleeping branch can be copied without its server's help, so less log is reason enough. */
const asleepLogBytesMin = 16 * megabyte;

export interface BaseQuestion {
  /** The newest base image; undefined when there is none. */
  readonly last: BaseRecord | undefined;
  readonly copied: LogPosition | null;
  /** Of the log. */
  readonly timeline: number;
  readonly isAwake: boolean;
  /** Whether base images share their blocks with the data. */
  readonly isShared: boolean;
  readonly now: Date;
  readonly retentionSeconds: number;
}

export function isBaseDue(question: BaseQuestion): boolean {
  const { last, copied, timeline, isAwake, isShared, now, retentionSeconds } = question;
  if (last === undefined || copied === null) return true;
  // Of an earlier timeline: it serves until there is one of this, which spares a recovery its parent's log.
  if (last.timeline !== timeline) return true;
  const written = Number(lsnBytes(copied.lsn) - lsnBytes(last.lsn));
  const isOld = now.getTime() - Date.parse(last.at) > retentionSeconds * 1_000;
  if (isShared) return written >= (isAwake && !isOld ? sharedLogBytesMax : asleepLogBytesMin);
  const affordable = Math.min(Math.max(copiedLogBytesMin, last.bytes), copiedLogBytesMax);
  return written >= affordable || (isOld && written >= copiedLogBytesMin);
}

/** The base images that no moment of the window needs any more. */
export function basesToDrop(bases: readonly BaseRecord[], keepFrom: string): BaseRecord[] {
  const needed = bases.findLastIndex(({ at }) => at <= keepFrom);
  return bases.slice(0, Math.max(needed, 0));
}

/** Whether every moment that the remaining base images give is after this segment. */
export function isLogUnneeded(segment: string, bases: readonly BaseRecord[]): boolean {
  const { timeline, at } = parseSegment(segment);
  const end = BigInt(at + 1) * segmentBytes;
  return bases.every((base) => timeline < base.timeline || end <= lsnBytes(base.start));
}

/** Of times in a row that a clock may have disturbed, the latest that is not after `at`. */
export function markBefore(marks: readonly LogPosition[], at: string): LogPosition | undefined {
  return marks.findLast((mark) => mark.at <= at);
}

export interface WindowFacts {
  readonly state: HistoryState;
  readonly bases: readonly BaseRecord[];
  readonly keepFrom: string;
  readonly marks: readonly LogPosition[];
}

/** The first and the last moment that can be given. */
export function windowOf({ state, bases, keepFrom, marks }: WindowFacts): Pick<BranchHistory, 'from' | 'until'> {
  const [first] = bases;
  const last = state.copied ?? state.lostSince;
  if (first === undefined || last === null) return { from: null, until: null };
  const begin = { at: first.at, lsn: first.lsn };
  const from = begin.at >= keepFrom ? begin : (markBefore(marks, keepFrom) ?? begin);
  const isOlder = from.at < begin.at;
  return { from: isOlder ? begin : { ...from, at: from.at < keepFrom ? keepFrom : from.at }, until: last };
}
