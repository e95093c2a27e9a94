/** How a moment is reached: from which base image, with which part of the log, and where recovery stops. Pure. */
import { type LogPosition, lsnBytes, lsnText, type Moment } from '../../../../lib/moments.ts';
import { type EndedTimeline, segmentsAcross } from '../../../../lib/timelines.ts';
import { NoSuchMomentError } from '../../../interface/driver.ts';
import { segmentBytes } from '../postgres/wal-segments.ts';
import type { BaseRecord, HistoryState } from './files.ts';

export interface RecoveryPlan {
  readonly base: BaseRecord;
  /** The segments that recovery needs, in order. */
  readonly segments: readonly string[];
  /** Settings that stop recovery there; empty when all of the log is replayed. */
  readonly target: Readonly<Record<string, string>>;
}

export interface RecoveryFacts {
  readonly state: HistoryState;
  /** Oldest first. */
  readonly bases: readonly BaseRecord[];
  readonly marks: readonly LogPosition[];
  /** The timelines that the log was on before. */
  readonly ended?: readonly EndedTimeline[];
}

export function planRecovery(facts: RecoveryFacts, moment: Moment): RecoveryPlan {
  const end = facts.state.copied ?? facts.state.lostSince;
  const base = facts.bases.findLast((one) => isReached(one, moment));
  if (base === undefined || end === null) throw new NoSuchMomentError(tooEarly(facts));
  requireNoGap(facts, moment);
  const stop = stopOf(facts, base, moment, end);
  const last = lsnBytes(stop.lsn) > lsnBytes(base.lsn) ? lsnBytes(stop.lsn) : lsnBytes(base.lsn);
  const { timeline, start } = base;
  const { state, ended = [] } = facts;
  const span = { timeline, from: lsnBytes(start), to: last, lastTimeline: state.timeline, ended };
  return { base, segments: segmentsAcross(span), target: stop.target };
}

function isReached(base: BaseRecord, moment: Moment): boolean {
  return moment.kind === 'time' ? base.at <= inUtc(moment.at) : lsnBytes(base.lsn) <= lsnBytes(moment.lsn);
}

/** In the form in which times are stored, so that they compare as text; microseconds are cut off. */
const inUtc = (at: string) => new Date(at).toISOString();

function requireNoGap({ state }: RecoveryFacts, moment: Moment): void {
  const open = state.copied === null && state.lostSince !== null ? [{ from: state.lostSince, until: null }] : [];
  for (const { from, until } of [...state.gaps, ...open]) {
    const [isAfter, isBefore] =
      moment.kind === 'time'
        ? [inUtc(moment.at) > from.at, until === null || inUtc(moment.at) < until.at]
        : [lsnBytes(moment.lsn) > lsnBytes(from.lsn), until === null || lsnBytes(moment.lsn) < lsnBytes(until.lsn)];
    if (!isAfter || !isBefore) continue;
    const to = until === null ? 'now' : `${until.at} (${until.lsn})`;
    throw new NoSuchMomentError(`the log between ${from.at} (${from.lsn}) and ${to} was lost`);
  }
}

/** The end of the log was read up to this long after the time that it was given. */
const endSlackMs = 1_000;

/**
 * A target beyond the end of the log is no target: recovery would fail for not reaching it. Before that, a time is
 * reached somewhere before the first position that the log had reached later, so no more log is needed. Times before
 * the base image do not count: where the clock went backwards, they may be later.
 */
function stopOf({ marks }: RecoveryFacts, base: BaseRecord, moment: Moment, end: LogPosition) {
  if (moment.kind === 'lsn') {
    if (lsnBytes(moment.lsn) > lsnBytes(end.lsn))
      throw new NoSuchMomentError(`the log of the branch ends at ${end.lsn} (${end.at})`);
    if (lsnBytes(moment.lsn) === lsnBytes(end.lsn)) return { lsn: end.lsn, target: {} };
    // Exclusive: without the record that begins there, which is later than what was asked for.
    const target = { recovery_target_lsn: moment.lsn, recovery_target_inclusive: 'off' };
    // The record that ends recovery may reach into the next segment.
    const last = lsnBytes(moment.lsn) + segmentBytes;
    return { lsn: last < lsnBytes(end.lsn) ? lsnText(last) : end.lsn, target };
  }
  if (Date.parse(moment.at) >= Date.parse(end.at) + endSlackMs) return { lsn: end.lsn, target: {} };
  const isLater = ({ at, lsn }: LogPosition) => at > inUtc(moment.at) && lsnBytes(lsn) > lsnBytes(base.lsn);
  const next = marks.find(isLater);
  return { lsn: next?.lsn ?? end.lsn, target: { recovery_target_time: withOffset(moment.at) } };
}

/** While a server reads its settings it knows no names of time zones, not even Z. */
const withOffset = (at: string) => at.replace(/z$/i, '+00');

function tooEarly({ bases }: RecoveryFacts): string {
  const [first] = bases;
  if (first === undefined) return 'the branch has no history yet';
  return `the history of the branch begins at ${first.at} (${first.lsn})`;
}
