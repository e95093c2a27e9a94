/**
 * Begins the history of a data directory without copying any data: a branch that is a copy of the template begins with
 * the template, by other names of its files; a copy of another branch, or of a moment of its past, with a base image of
 * that branch and the log since then. So the first moment that can be given is the one at which the data was made.
 */
import { link, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BranchId } from '../../../../lib/ids.ts';
import { lsnBytes, lsnText } from '../../../../lib/moments.ts';
import { type EndedTimeline, segmentsAcross } from '../../../../lib/timelines.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import type { BranchRecord, SourcePast } from '../home/records.ts';
import { readControlFile } from '../postgres/control-file.ts';
import { readEndedTimelines, readTimelineFile, timelineFilesIn } from '../postgres/timelines.ts';
import { segmentBytes, segmentName } from '../postgres/wal-segments.ts';
import { makeLinkedBase } from './bases.ts';
import { type LogCopy, LogLostError } from './copy-log.ts';
import { type BaseRecord, type HistoryPaths, type HistoryState, makeReadable, writeState } from './files.ts';

export interface Beginning {
  readonly branchId: BranchId;
  /** Its folders exist. */
  readonly paths: HistoryPaths;
  readonly record: BranchRecord;
  readonly data: string;
  readonly layout: Layout;
  readonly group: number | null;
  /** Null where there is none any more. */
  readonly source: SourceHistory | null;
}

export interface SourceHistory {
  readonly paths: HistoryPaths;
  readonly state: HistoryState;
  /** Oldest first. */
  readonly bases: readonly BaseRecord[];
  readonly ended: readonly EndedTimeline[];
}

/** Where the copying of the log begins. */
type Start = Pick<HistoryState, 'timeline' | 'copied'>;

/** The state is written last: a kill anywhere before begins again. */
export async function beginHistory(beginning: Beginning): Promise<void> {
  const { branchId, paths, record, group } = beginning;
  for (const name of await readdir(paths.bases)) await rm(join(paths.bases, name), { recursive: true, force: true });
  const start = (await beginWithTemplate(beginning)) ?? (await beginWithSource(beginning));
  const blank = { branchId, pgVersion: record.pgVersion, timeline: 1, copied: null, gaps: [], lostSince: null };
  writeState(paths, { ...blank, ...start }, group);
}

async function beginWithTemplate({ paths, record, data, layout, group }: Beginning): Promise<Start | null> {
  const { past, pgVersion } = record;
  if (!past?.template) return null;
  const template = layout.template(pgVersion, past.template);
  const facts = await readControlFile(dataDirectory(template)).catch(() => null);
  // After a sleep or two the log since then may be gone.
  const first = facts && segmentName(facts.timeline, Number(facts.redo / segmentBytes));
  if (first === null || !(await stat(join(data, 'pg_wal', first)).catch(() => null))) return null;
  const { timeline, redo, checkpoint } = facts as NonNullable<typeof facts>;
  const start = lsnText((redo / segmentBytes) * segmentBytes);
  const base = await makeLinkedBase(paths, {
    data: dataDirectory(template),
    firstSecret: await readFile(join(template, 'secret'), 'utf8'),
    facts: { timeline, start, lsn: lsnText(checkpoint), at: past.madeAt, bytes: 0, bytesShared: 0, isLive: false },
    group,
  });
  return { timeline, copied: { at: base.at, lsn: start } };
}

async function beginWithSource({ paths, record, source, group }: Beginning): Promise<Start | null> {
  const { past } = record;
  if (!past?.parent || source === null) return null;
  const base = baseFor(source, past.parent);
  if (base === null) return null;
  const until = lsnBytes(past.parent.until);
  const whole = (until / segmentBytes) * segmentBytes;
  const names = segmentsFor(source, base, whole);
  if (!(await linkLog(source.paths.log, paths.log, names, group))) return null;
  const from = join(source.paths.bases, base.name);
  const { timeline, start, bytes, bytesShared, isLive } = base;
  // A moment on an earlier timeline is one of the source.
  const lsn = timeline === past.parent.timeline ? base.lsn : past.parent.until;
  await makeLinkedBase(paths, {
    data: dataDirectory(from),
    firstSecret: await readFile(join(from, 'first-secret'), 'utf8').catch(() => null),
    facts: { timeline, start, lsn, at: past.madeAt, bytes, bytesShared, isLive },
    group,
  });
  return { timeline: past.parent.timeline, copied: { at: past.madeAt, lsn: lsnText(whole) } };
}

/** The newest base image of the source from which its log leads to the copy; null when there is none. */
function baseFor({ state, bases }: SourceHistory, { timeline, until }: SourcePast): BaseRecord | null {
  const [end, reached] = [state.copied ?? state.lostSince, lsnBytes(until)];
  const isComplete = end !== null && lsnBytes(end.lsn) >= (reached / segmentBytes) * segmentBytes;
  if (state.timeline !== timeline || !isComplete) return null;
  const base = bases.findLast(({ lsn }) => lsnBytes(lsn) <= reached);
  const isLost = state.gaps.some(
    (gap) => base !== undefined && lsnBytes(gap.until.lsn) > lsnBytes(base.lsn) && lsnBytes(gap.from.lsn) < reached,
  );
  return base === undefined || isLost ? null : base;
}

function segmentsFor({ state, ended }: SourceHistory, { timeline, start }: BaseRecord, whole: bigint): string[] {
  const from = lsnBytes(start);
  if (whole <= from) return [];
  return segmentsAcross({ timeline, from, to: whole - 1n, lastTimeline: state.timeline, ended });
}

/** Whole segments never change, so both histories have the same files; false when one is missing. */
async function linkLog(from: string, to: string, names: readonly string[], group: number | null): Promise<boolean> {
  for (const name of names) {
    const size = (await stat(join(from, name)).catch(() => null))?.size;
    if (size !== Number(segmentBytes)) return false;
    await rm(join(to, name), { force: true });
    await link(join(from, name), join(to, name));
  }
  await copyTimelineFiles({ from, to, sourceOwner: null, group });
  return true;
}

/**
 * The server was recovered and has gone on to another timeline. Returns where its log is copied from, which begins with
 * the segment of that change. Everything before must have been copied.
 */
export async function enterTimeline(copy: LogCopy, timeline: number, known: HistoryState): Promise<bigint> {
  const ended = (await readEndedTimelines(copy.source, timeline, copy.sourceOwner)).at(-1);
  const begin = ended && (ended.end / segmentBytes) * segmentBytes;
  const isNext = ended?.timeline === known.timeline && known.copied !== null;
  if (begin === undefined || !isNext || lsnBytes(known.copied.lsn) < begin)
    throw new LogLostError(`of timeline ${known.timeline}`);
  await copyTimelineFiles({ from: copy.source, to: copy.target, sourceOwner: copy.sourceOwner, group: copy.group });
  return begin;
}

interface TimelineCopy {
  readonly from: string;
  readonly to: string;
  readonly sourceOwner: number | null;
  readonly group: number | null;
}

/** They tell a recovery which timeline follows which. */
export async function copyTimelineFiles({ from, to, sourceOwner, group }: TimelineCopy): Promise<void> {
  for (const name of await timelineFilesIn(from)) {
    const text = await readTimelineFile(from, name, sourceOwner);
    if (text === null) continue;
    await writeFile(join(to, `${name}.new`), text, { mode: 0o600 });
    makeReadable(join(to, `${name}.new`), 0o640, group);
    await rename(join(to, `${name}.new`), join(to, name));
  }
}
