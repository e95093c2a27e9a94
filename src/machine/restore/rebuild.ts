/**
 * Builds a data directory from a backup: fetches a base image and the log behind it, and recovers them to a moment. A
 * base image that is missing or was changed is replaced by an older one and more log. Where a piece of the log itself
 * is missing, the data ends before it, and the result says which moments are lost. It also does so where the log
 * continues on another timeline, and the file that says from which position is missing.
 */
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { basePartKeys, logKey } from '../../backup/layout.ts';
import { open, SealBrokenError } from '../../backup/seal/seal.ts';
import { NoSuchObjectError, ObjectChangedError } from '../../backup/store/object-store.ts';
import { unpackFolder } from '../../backup/tar.ts';
import { requireRoom } from '../../compute/local/host/copy/room.ts';
import { chownTree } from '../../compute/local/host/copy/tree.ts';
import { planRecovery, type RecoveryPlan } from '../../compute/local/host/history/plan.ts';
import { parseSegment, segmentBytes } from '../../compute/local/host/postgres/wal-segments.ts';
import { errorText } from '../../lib/errors.ts';
import { type LogPosition, lsnBytes, lsnText, type Moment } from '../../lib/moments.ts';
import { type EndedTimeline, endedTimelines, isFollowed, timelineFile } from '../../lib/timelines.ts';
import { type Inspect, type Recovered, recover } from '../recovery/recover.ts';
import type { ScratchSpec } from '../recovery/scratch-server.ts';
import type { Backup, StoredHistory } from './backup.ts';

export interface RebuildSpec {
  readonly backup: Pick<Backup, 'store' | 'key'>;
  readonly history: StoredHistory;
  /** Null for everything that the backup has. */
  readonly moment: Moment | null;
  /** Exists and is empty; gets `pgdata`, owned by `server.uid`. */
  readonly directory: string;
  readonly server: Pick<ScratchSpec, 'build' | 'uid' | 'layout'>;
  /** Works on the recovered data, before its server is stopped. */
  readonly inspect?: Inspect;
}

export interface Rebuilt extends Recovered {
  readonly base: string;
  readonly logBytes: number;
  /** Moments that cannot be given because an object is missing or was changed; null if none was asked for. */
  readonly lost: LostSpan | null;
  /** Objects that could not be used, and are no log. */
  readonly problems: readonly string[];
}

export interface LostSpan {
  readonly from: LogPosition;
  readonly until: LogPosition;
  readonly reason: string;
}

/** Fetched at once: enough to hide the distance to a store, and little memory. */
const fetchesAtOnce = 4;
/** To read an object that is written again meanwhile. */
const attemptsMax = 5;
const endOfTime: Moment = { kind: 'time', at: '9999-01-01T00:00:00Z' };

export async function rebuild(spec: RebuildSpec): Promise<Rebuilt> {
  const { bases } = spec.history.document;
  const path = await readPath(spec);
  const problems = path.problem === null ? [] : [path.problem];
  for (let tried = bases.length; tried > 0; ) {
    const plan = planWith(spec, tried, path);
    tried = bases.findIndex(({ name }) => name === plan.base.name);
    const data = join(spec.directory, 'pgdata');
    await rm(data, { recursive: true, force: true });
    try {
      await fetchBase(spec, plan, data);
    } catch (error) {
      if (!isDamage(error)) throw error;
      problems.push(errorText(error));
      continue;
    }
    return { ...(await fetchLogAndRecover(spec, plan, path, data)), problems };
  }
  throw new Error(`no base image can be used: ${problems.join('; ')}`);
}

/** How the log came to the timeline that it ends on. */
interface LogPath {
  readonly ended: readonly EndedTimeline[];
  /** What the file says that tells it; null where there is none, or somebody has changed it. */
  readonly file: string | null;
  readonly problem: string | null;
}

async function readPath({ backup: { store, key }, history }: RebuildSpec): Promise<LogPath> {
  const name = logKey(history, timelineFile(history.document.timeline));
  try {
    const file = await text(open(key, name, await store.get(name)));
    return { ended: endedTimelines(file), file, problem: null };
  } catch (error) {
    if (!isDamage(error)) throw error;
    // The first timeline has no such file, and a history that begins on a later one need not have it.
    return { ended: [], file: null, problem: error instanceof NoSuchObjectError ? null : errorText(error) };
  }
}

const isKnown = ({ history: { document } }: RebuildSpec, { base }: RecoveryPlan, { ended }: LogPath) =>
  isFollowed({ timeline: base.timeline, from: lsnBytes(base.start), lastTimeline: document.timeline, ended });

/** With the first `count` base images. Throws with the moments that there are if none gives this one. */
function planWith({ history, moment }: RebuildSpec, count: number, { ended }: LogPath): RecoveryPlan {
  const { document } = history;
  const { branchId, pgVersion, timeline, until, gaps, marks } = document;
  const state = { branchId, pgVersion, timeline, copied: until, gaps, lostSince: null };
  const bases = document.bases.slice(0, count).map((base) => ({ ...base, bytesShared: 0 }));
  return planRecovery({ state, bases, marks, ended }, moment ?? endOfTime);
}

const isDamage = (error: unknown) => error instanceof SealBrokenError || error instanceof NoSuchObjectError;

async function fetchBase({ backup, history, directory }: RebuildSpec, plan: RecoveryPlan, data: string): Promise<void> {
  await requireRoom(directory, plan.base.bytes + plan.segments.length * Number(segmentBytes));
  await mkdir(data, { mode: 0o700 });
  const { name } = plan.base;
  const parts = history.document.bases.find((base) => base.name === name)?.parts ?? 0;
  for (const key of basePartKeys(history, { name, parts })) {
    const read = async () => open(backup.key, key, await backup.store.get(key));
    await unpackFolder(await read(), data, { flush: false }).catch(async (error: unknown) => {
      // Bytes that were changed may be no archive any more before their proof is reached.
      for await (const _ of await read());
      throw error;
    });
  }
  await mkdir(join(data, 'pg_wal', 'archive_status'), { recursive: true, mode: 0o700 });
  await chmod(data, 0o700);
}

async function fetchLogAndRecover(
  spec: RebuildSpec,
  plan: RecoveryPlan,
  path: LogPath,
  data: string,
): Promise<Omit<Rebuilt, 'problems'>> {
  const { server, directory, moment, inspect } = spec;
  const log = join(data, 'pg_wal');
  const { usable, damage: hole } = await fetchLog(spec, plan, log);
  const isPathKnown = isKnown(spec, plan, path);
  const damage = isPathKnown ? hole : damageOfPath(spec, plan, path, hole);
  const last = spec.history.document.timeline;
  if (isPathKnown && path.file !== null) await writeFile(join(log, timelineFile(last)), path.file, { mode: 0o600 });
  const lost = damage === null ? null : lostSpan(spec.history, damage);
  if (lost !== null && lsnBytes(lost.from.lsn) < lsnBytes(plan.base.lsn)) {
    throw new Error(`${lost.reason}; ${inWords(lost)}, and no other base image leads past it`);
  }
  if (server.uid !== null) await chownTree(data, server.uid);
  const timeline = isPathKnown && plan.base.timeline !== last ? last : undefined;
  const recovery = { ...server, dataDirectory: data, logFile: join(directory, 'recovery.log'), timeline };
  const recovered = await recover(recovery, isBeyondLog(spec, plan) ? null : moment, inspect);
  await rm(join(directory, 'recovery.log'), { force: true });
  // A moment before the hole was given in full.
  const isCut = lost !== null && !(moment !== null && recovered.reachedMoment);
  return { ...recovered, base: plan.base.name, logBytes: usable * Number(segmentBytes), lost: isCut ? lost : null };
}

/** The plan knows by its marks when the moment is at the end of the log or later: then there is no target. */
const isBeyondLog = ({ moment }: RebuildSpec, { target }: RecoveryPlan) =>
  moment !== null && Object.keys(target).length === 0;

interface Damage {
  /** Where the log ends because of it. */
  readonly at: bigint;
  readonly reason: string;
}

/**
 * The log that was found is that of the base image's own timeline alone, which may have ended within its last segment.
 * Up to a gap that begins on it, it is all that there was.
 */
function damageOfPath(
  { history }: RebuildSpec,
  plan: RecoveryPlan,
  path: LogPath,
  found: Damage | null,
): Damage | null {
  const { timeline, gaps } = history.document;
  const begin = lsnBytes(plan.base.lsn);
  const last = positionOf(plan.segments.at(-1) ?? '');
  if (gaps.some(({ from }) => lsnBytes(from.lsn) >= begin && lsnBytes(from.lsn) >= last)) return found;
  const name = logKey(history, timelineFile(timeline));
  const reason = path.problem ?? `no ${name} says where timeline ${plan.base.timeline} ended`;
  return { at: found?.at ?? begin, reason };
}

async function fetchLog({ backup, history }: RebuildSpec, plan: RecoveryPlan, folder: string) {
  const end = history.document.until;
  const segments = plan.segments.filter((name) => end === null || positionOf(name) < lsnBytes(end.lsn));
  let [next, usable] = [0, segments.length];
  let damage: Damage | null = null;
  const lane = async () => {
    for (let index = next++; index < usable; index = next++) {
      const name = segments[index] ?? '';
      try {
        await fetchSegment(backup, logKey(history, name), join(folder, name));
      } catch (error) {
        if (!isDamage(error)) throw error;
        // Another lane may have met an earlier hole.
        if (index < usable) [usable, damage] = [index, { at: positionOf(name), reason: errorText(error) }];
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: fetchesAtOnce }, lane));
  for (const one of lanes) if (one.status === 'rejected') throw one.reason;
  for (const name of segments.slice(usable)) await rm(join(folder, name), { force: true });
  return { usable, damage: damage as Damage | null };
}

async function fetchSegment(backup: RebuildSpec['backup'], key: string, path: string): Promise<void> {
  await fetchFile(backup, key, path);
  // A server reads whole segments; what was not written yet is zeros.
  await truncate(path, Number(segmentBytes));
}

async function fetchFile({ store, key }: RebuildSpec['backup'], name: string, path: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    await rm(path, { force: true });
    try {
      const bytes = open(key, name, await store.get(name));
      return await pipeline(bytes, createWriteStream(path, { mode: 0o600, flags: 'wx' }));
    } catch (error) {
      // The newest log is written again as it grows, by a Catnap that runs.
      if (!(error instanceof ObjectChangedError) || attempt === attemptsMax) throw error;
    }
  }
}

const positionOf = (segment: string) => BigInt(parseSegment(segment).at) * segmentBytes;

function lostSpan({ document }: StoredHistory, { at: begin, reason }: Damage): LostSpan {
  const before = document.marks.findLast(({ lsn }) => lsnBytes(lsn) <= begin);
  const next = document.bases.find(({ start }) => lsnBytes(start) > begin);
  const until = next ?? document.until ?? { at: 'now', lsn: lsnText(begin) };
  const from = { at: before?.at ?? document.bases.at(-1)?.at ?? 'the beginning', lsn: lsnText(begin) };
  return { from, until: { at: until.at, lsn: until.lsn }, reason };
}

export const inWords = ({ from, until }: Pick<LostSpan, 'from' | 'until'>) =>
  `moments after ${from.at} (${from.lsn}) and before ${until.at} (${until.lsn}) cannot be given`;
