/**
 * What is uploaded of a history, and what of it is given up in the store. Pure. Base images on the machine are nearly
 * free and often made; in the store each is a whole copy, so that one goes there only if it pays.
 */
import { dayMs } from '../../lib/clock.ts';
import { isSegment, segmentAt, segmentBytes } from '../../lib/log-segments.ts';
import { type LogPosition, lsnBytes, lsnText } from '../../lib/moments.ts';
import { isFollowed, segmentsAcross } from '../../lib/timelines.ts';
import type { BaseImage, HistoryDocument } from '../documents.ts';
import type { LocalHistory } from './local-tree.ts';

const megabyte = 1024 ** 2;
/** So much log, or as much as the data, is replayed by a restore at most, if the machine has a newer base image. */
const logBytesMin = 256 * megabyte;
/** Past its window, a base image is replaced for this much log: the older log can go then. */
const agedLogBytesMin = 16 * megabyte;

/** What the store has of a history. */
export interface StoredHistory {
  readonly bases: readonly BaseImage[];
  readonly until: LogPosition | null;
  readonly gaps: HistoryDocument['gaps'];
  /** Names of the log files. */
  readonly log: ReadonlySet<string>;
  /** Names of base images of which the store has some parts. */
  readonly begun: ReadonlySet<string>;
}

export interface UploadPlan {
  /** Log files in the order in which they must go. */
  readonly log: readonly string[];
  /** A base image that the store should get; null for none. */
  readonly base: BaseImage | null;
  /** Where the store's log ends for good, because the machine gave up what follows; the base image ends the gap. */
  readonly lostAfter: LogPosition | null;
}

export interface PlanQuestion {
  readonly local: LocalHistory;
  readonly stored: StoredHistory;
  readonly retentionSeconds: number;
  readonly now: Date;
}

export function planUpload({ local, stored, retentionSeconds, now }: PlanQuestion): UploadPlan {
  const { until } = local;
  if (until === null) return { log: [], base: null, lostAfter: null };
  const newest = stored.bases.at(-1);
  const missing = newest && firstMissing(local, stored.log, newest);
  const isBroken = missing !== undefined;
  const candidates = local.bases.filter(
    (base) => firstMissing(local, stored.log, base) === undefined && isNewer(base, newest),
  );
  // One that is half there is finished first, or an upload that is interrupted again and again would never end.
  const candidate = candidates.findLast(({ name }) => stored.begun.has(name)) ?? candidates.at(-1);
  const isDue = newest === undefined || isBroken || isBaseDue(newest, until, { retentionSeconds, now });
  const base = isDue ? (candidate ?? null) : null;
  const needed = [...stored.bases, ...(base ? [base] : [])].map(({ timeline, start }) => segmentAt(timeline, start));
  const first = needed.sort()[0];
  const log = first === undefined ? [] : local.log.map(({ name }) => name).filter((name) => isNeeded(name, first));
  return { log, base, lostAfter: isBroken ? lastBefore(missing, stored, newest) : null };
}

const isNewer = (base: BaseImage, than: BaseImage | undefined) =>
  than === undefined || lsnBytes(base.lsn) > lsnBytes(than.lsn) || base.timeline > than.timeline;

const isNeeded = (name: string, first: string) => !isSegment(name) || name >= first;

export type Gap = HistoryDocument['gaps'][number];

/** The first position of which neither side has the log, on the way from a base image to the end. */
function firstMissing(local: LocalHistory, storedLog: ReadonlySet<string>, base: BaseImage): string | undefined {
  if (local.until === null) return undefined;
  const gap = local.gaps.find(({ until }) => lsnBytes(until.lsn) > lsnBytes(base.lsn));
  if (gap !== undefined) return gap.from.lsn;
  // The last segment counts if the log has begun it.
  const [from, to] = [lsnBytes(base.start), lsnBytes(local.until.lsn) - 1n];
  const span = { timeline: base.timeline, from, to, lastTimeline: local.timeline, ended: local.ended };
  // Where its timeline ended is not known, so any of its log may be of a future that the branch never had.
  if (!isFollowed(span)) return base.lsn;
  const here = new Set(local.log.map(({ name }) => name));
  const at = segmentsAcross(span).findIndex((name) => !here.has(name) && !storedLog.has(name));
  return at === -1 ? undefined : lsnText((from / segmentBytes + BigInt(at)) * segmentBytes);
}

/** A gap that was none: the machine still has all log from a base image before it on. */
export function isFilled(gap: Gap, local: LocalHistory, bases: readonly BaseImage[]): boolean {
  const base = bases.findLast(({ lsn }) => lsnBytes(lsn) <= lsnBytes(gap.from.lsn));
  return base !== undefined && firstMissing(local, new Set(), base) === undefined;
}

function lastBefore(missing: string, { until }: StoredHistory, newest: BaseImage | undefined): LogPosition | null {
  if (until !== null && lsnBytes(until.lsn) <= lsnBytes(missing)) return until;
  // An object of the store is gone; the time of its log is not known, only that it is later than the base image.
  return newest ? { at: newest.at, lsn: missing } : null;
}

function isBaseDue(
  newest: BaseImage,
  until: LogPosition,
  { retentionSeconds, now }: { readonly retentionSeconds: number; readonly now: Date },
): boolean {
  const written = Number(lsnBytes(until.lsn) - lsnBytes(newest.lsn));
  if (written >= Math.max(logBytesMin, newest.bytes)) return true;
  const ageMs = now.getTime() - Date.parse(newest.at);
  return ageMs > Math.max(dayMs, retentionSeconds * 1_000) && written >= agedLogBytesMin;
}

/** The base images that no moment of the window needs any more. */
export function basesToDrop<T extends BaseImage>(bases: readonly T[], keepFrom: Date): T[] {
  const needed = bases.findLast(({ at }) => at <= keepFrom.toISOString());
  return needed === undefined ? [] : bases.filter(({ at }) => at < needed.at);
}

/** The log that is older than every base image. Without any, all log may still be needed by one that is on its way. */
export function logToDrop(log: Iterable<string>, bases: readonly BaseImage[]): string[] {
  const first = bases.map(({ timeline, start }) => segmentAt(timeline, start)).sort()[0];
  return first === undefined ? [] : [...log].filter((name) => isSegment(name) && name < first);
}
