/** Gives up what no moment of the window needs any more, and tells what is left. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BranchHistory } from '../../../../lib/model.ts';
import { lsnBytes } from '../../../../lib/moments.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import { discard } from '../home/tenant-directories.ts';
import { isSegment } from '../postgres/wal-segments.ts';
import {
  type BaseRecord,
  type HistoryPaths,
  type HistoryState,
  readBases,
  readMarks,
  readState,
  writeMarks,
  writeState,
} from './files.ts';
import { basesToDrop, isLogUnneeded, windowOf } from './policy.ts';

export interface Pruning {
  readonly retentionSeconds: number;
  /** By a clock that does not jump forward. */
  readonly now: Date;
  readonly layout: Layout;
  readonly group: number | null;
  /** By a recovery, which may need what is too old for others. */
  readonly isRead: boolean;
}

export const noHistory: BranchHistory = {
  from: null,
  until: null,
  gaps: [],
  baseCount: 0,
  baseBytes: 0,
  logBytes: 0,
};

/** A history is asked for every few seconds, and to look through all of it each time would cost more than copying. */
const pruneEveryMs = 60_000;

export class Pruner {
  readonly #told = new Map<
    string,
    { readonly atMs: number; readonly seconds: number; readonly history: BranchHistory }
  >();

  /** Between two looks only the end of the log is brought up to date. */
  async tell(historyId: string, paths: HistoryPaths, pruning: Pruning): Promise<BranchHistory> {
    const told = this.#told.get(historyId);
    const freshMs = Math.min(pruneEveryMs, pruning.retentionSeconds * 1_000);
    const isFresh = told !== undefined && performance.now() - told.atMs < freshMs;
    if (isFresh && told.seconds === pruning.retentionSeconds) return withEnd(told.history, await readState(paths));
    const history = await prune(paths, pruning);
    this.#told.set(historyId, { atMs: performance.now(), seconds: pruning.retentionSeconds, history });
    return history;
  }

  /** Call it when anything but the end of the log has changed. */
  forget(historyId: string): void {
    this.#told.delete(historyId);
  }
}

function withEnd(history: BranchHistory, state: HistoryState | null): BranchHistory {
  const until = state?.copied ?? state?.lostSince ?? null;
  if (until === null || history.until === null) return history;
  const more = Number(lsnBytes(until.lsn) - lsnBytes(history.until.lsn));
  return { ...history, until, logBytes: history.logBytes + Math.max(0, more) };
}

/** Base images first: a kill in between leaves log that nothing needs, and never a base image without its log. */
export async function prune(paths: HistoryPaths, pruning: Pruning): Promise<BranchHistory> {
  const { retentionSeconds, now, layout, group, isRead } = pruning;
  const keepFrom = new Date(now.getTime() - retentionSeconds * 1_000).toISOString();
  const found = await readBases(paths);
  const dropped = new Set(isRead ? [] : basesToDrop(found, keepFrom));
  for (const { name } of dropped) await discard(join(paths.bases, name), layout);
  const bases = found.filter((base) => !dropped.has(base));
  const names = (await readdir(paths.log)).filter(isSegment);
  const unneeded = isRead ? [] : names.filter((name) => isLogUnneeded(name, bases));
  for (const name of unneeded) await rm(join(paths.log, name), { force: true });
  const state = await pruneMarks(paths, bases, { isDue: dropped.size > 0, group });
  const left = names.filter((name) => !unneeded.includes(name));
  const shares = await Promise.all(left.map((name) => shareOf(join(paths.log, name))));
  const costs = await Promise.all(bases.map((base) => costOf(paths, base)));
  return {
    ...windowOf({ state, bases, keepFrom, marks: await readMarks(paths) }),
    gaps: state.gaps,
    baseCount: bases.length,
    baseBytes: Math.round(costs.reduce((sum, cost) => sum + cost, 0)),
    logBytes: Math.round(shares.reduce((sum, { size, share }) => sum + size * share, 0)),
  };
}

/** A file that several histories have is divided among them. */
async function shareOf(path: string): Promise<{ readonly size: number; readonly share: number }> {
  const { size, nlink } = await stat(path);
  return { size, share: 1 / nlink };
}

/** Beyond the blocks that it shares with the data. All files of a base image have as many names as the first. */
async function costOf({ bases }: HistoryPaths, { name, bytes, bytesShared }: BaseRecord): Promise<number> {
  if (bytes === bytesShared) return 0;
  const { share } = await shareOf(join(dataDirectory(join(bases, name)), 'PG_VERSION'));
  return (bytes - bytesShared) * share;
}

async function pruneMarks(
  paths: HistoryPaths,
  [first]: readonly BaseRecord[],
  { isDue, group }: { readonly isDue: boolean; readonly group: number | null },
): Promise<HistoryState> {
  const state = await readState(paths);
  if (state === null) throw new Error('BUG: a history without a state is pruned');
  if (!isDue || first === undefined) return state;
  const marks = await readMarks(paths);
  writeMarks(
    paths,
    marks.filter(({ lsn }) => lsnBytes(lsn) >= lsnBytes(first.lsn)),
    group,
  );
  const gaps = state.gaps.filter(({ until }) => until.at > first.at);
  if (gaps.length < state.gaps.length) writeState(paths, { ...state, gaps }, group);
  return { ...state, gaps };
}
