/**
 * Builds a data directory from a backup: fetches a base image and the log behind it, and recovers them to a moment. A
 * base image that is missing or was changed is replaced by an older one and more log. Where a piece of the log itself
 * is missing, the data ends before it, and the result says which moments are lost.
 */
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
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
  /** Base images that could not be used. */
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
  const problems: string[] = [];
  for (let tried = bases.length; tried > 0; ) {
    const plan = planWith(spec, tried);
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
    return { ...(await fetchLogAndRecover(spec, plan, data)), problems };
  }
  throw new Error(`no base image can be used: ${problems.join('; ')}`);
}

/** With the first `count` base images. Throws with the moments that there are if none gives this one. */
function planWith({ history, moment }: RebuildSpec, count: number): RecoveryPlan {
  const { document } = history;
  const { branchId, pgVersion, timeline, until, gaps, marks } = document;
  const state = { branchId, pgVersion, timeline, copied: until, gaps, lostSince: null };
  const bases = document.bases.slice(0, count).map((base) => ({ ...base, bytesShared: 0 }));
  return planRecovery({ state, bases, marks }, moment ?? endOfTime);
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
  data: string,
): Promise<Omit<Rebuilt, 'problems'>> {
  const { server, directory, moment, inspect } = spec;
  const { usable, damage } = await fetchLog(spec, plan, join(data, 'pg_wal'));
  const lost = damage === null ? null : lostSpan(spec.history, damage);
  if (lost !== null && lsnBytes(lost.from.lsn) < lsnBytes(plan.base.lsn)) {
    throw new Error(`${lost.reason}; ${inWords(lost)}, and no other base image leads past it`);
  }
  if (server.uid !== null) await chownTree(data, server.uid);
  const recovery = { ...server, dataDirectory: data, logFile: join(directory, 'recovery.log') };
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
  readonly segment: string;
  readonly reason: string;
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
        if (index < usable) [usable, damage] = [index, { segment: name, reason: errorText(error) }];
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: fetchesAtOnce }, lane));
  for (const one of lanes) if (one.status === 'rejected') throw one.reason;
  for (const name of segments.slice(usable)) await rm(join(folder, name), { force: true });
  const timelines = [...history.log].filter((name) => name.endsWith('.history'));
  for (const name of timelines) await fetchFile(backup, logKey(history, name), join(folder, name));
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

function lostSpan({ document }: StoredHistory, { segment, reason }: Damage): LostSpan {
  const begin = positionOf(segment);
  const before = document.marks.findLast(({ lsn }) => lsnBytes(lsn) <= begin);
  const next = document.bases.find(({ start }) => lsnBytes(start) > begin);
  const until = next ?? document.until ?? { at: 'now', lsn: lsnText(begin) };
  const from = { at: before?.at ?? document.bases.at(-1)?.at ?? 'the beginning', lsn: lsnText(begin) };
  return { from, until: { at: until.at, lsn: until.lsn }, reason };
}

export const inWords = ({ from, until }: Pick<LostSpan, 'from' | 'until'>) =>
  `moments after ${from.at} (${from.lsn}) and before ${until.at} (${until.lsn}) cannot be given`;
