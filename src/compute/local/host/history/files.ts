/**
 * The files of one history, which belongs to a data directory and not to a branch: a restore that exchanges directories
 * leaves each with its own past.
 *
 *   history.json                 how far the log has been copied
 *   marks                        when the log had reached which position, a line each
 *   log/<segment>                the log; the copy of the newest segment grows
 *   log/<timeline>.history       which timelines the log was on before
 *   bases/<name>/                base.json, pgdata, and first-secret where the data still has the template's
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, lchownSync, renameSync, writeFileSync } from 'node:fs';
import { appendFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../../../lib/make-folder.ts';
import type { BranchHistory } from '../../../../lib/model.ts';
import { type LogPosition, lsnBytes } from '../../../../lib/moments.ts';
import { unfinishedPrefix } from '../home/layout.ts';
import { readEndedTimelines } from '../postgres/timelines.ts';

export interface HistoryState {
  readonly branchId: string;
  readonly pgVersion: number;
  readonly timeline: number;
  /** All of the log up to here is copied; null when the log was interrupted and waits for a new base image. */
  readonly copied: LogPosition | null;
  readonly gaps: BranchHistory['gaps'];
  /** Where an interruption began that no base image has ended yet. */
  readonly lostSince: LogPosition | null;
}

export interface BaseRecord {
  readonly name: string;
  readonly timeline: number;
  /** Where its recovery begins to read the log. */
  readonly start: string;
  /** From here on it gives every moment: its state is consistent, and all of it is older than `at`. */
  readonly lsn: string;
  readonly at: string;
  readonly bytes: number;
  readonly bytesShared: number;
  /** The copy of a server that ran, with a backup label. */
  readonly isLive: boolean;
  /** Its files are those of the template or of another base image, by other names. */
  readonly isLinked?: boolean;
}

export interface HistoryPaths {
  readonly directory: string;
  readonly log: string;
  readonly bases: string;
  readonly marks: string;
}

export function historyPaths(directory: string): HistoryPaths {
  return {
    directory,
    log: join(directory, 'log'),
    bases: join(directory, 'bases'),
    marks: join(directory, 'marks'),
  };
}

/**
 * A time, but none before what is known already: a clock that was set back, or that has whole seconds only, must not
 * make the log go back in time.
 */
export function notBefore(state: HistoryState | null, at: string): string {
  const [known = '', found] = [(state?.copied ?? state?.lostSince)?.at, new Date(at).toISOString()];
  return found > known ? found : known;
}

/** Names sort by age. */
export const newBaseName = (at: string) => `${at.replaceAll(/\D/g, '').slice(0, 17)}-${randomBytes(3).toString('hex')}`;

/** Only the parent writes here; `group` may read. */
export function makeReadable(path: string, mode: number, group: number | null): void {
  if (group === null) return;
  chmodSync(path, mode);
  lchownSync(path, -1, group);
}

export function makeHistoryFolder(path: string, group: number | null): void {
  makeFolder(path, 0o700);
  makeReadable(path, 0o750, group);
}

export async function readState({ directory }: HistoryPaths): Promise<HistoryState | null> {
  const text = await readText(join(directory, 'history.json'));
  return text === null ? null : (JSON.parse(text) as HistoryState);
}

export function writeState({ directory }: HistoryPaths, state: HistoryState, group: number | null): void {
  writeJson(join(directory, 'history.json'), state, group);
}

export async function readBases({ bases }: HistoryPaths): Promise<BaseRecord[]> {
  const names = (await readdir(bases).catch(() => [] as string[])).filter((name) => !name.startsWith('.'));
  const texts = await Promise.all(names.map((name) => readText(join(bases, name, 'base.json'))));
  const records = texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as BaseRecord]));
  // By position: a clock may have gone backwards between two of them.
  return records.sort((a, b) => a.timeline - b.timeline || (lsnBytes(a.lsn) < lsnBytes(b.lsn) ? -1 : 1));
}

export function writeBaseRecord(directory: string, record: BaseRecord, group: number | null): void {
  writeJson(join(directory, 'base.json'), record, group);
}

export const unfinishedBase = (paths: HistoryPaths, name: string) => join(paths.bases, `${unfinishedPrefix}${name}`);

export async function appendMark(
  { marks }: HistoryPaths,
  { at, lsn }: LogPosition,
  group: number | null,
): Promise<void> {
  await appendFile(marks, `${at} ${lsn}\n`, { mode: 0o600 });
  makeReadable(marks, 0o640, group);
}

export async function readMarks({ marks }: HistoryPaths): Promise<LogPosition[]> {
  const lines = ((await readText(marks)) ?? '').split('\n');
  return lines.flatMap((line) => {
    const [at, lsn] = line.split(' ');
    return at !== undefined && lsn !== undefined && /^\d{4}-.*Z$/.test(at) ? [{ at, lsn }] : [];
  });
}

export function writeMarks({ marks }: HistoryPaths, positions: readonly LogPosition[], group: number | null): void {
  writeFileSync(`${marks}.new`, positions.map(({ at, lsn }) => `${at} ${lsn}\n`).join(''), { mode: 0o600 });
  makeReadable(`${marks}.new`, 0o640, group);
  renameSync(`${marks}.new`, marks);
}

/** All that a recovery is planned from; null where there is no history. */
export async function readFacts(paths: HistoryPaths) {
  const state = await readState(paths);
  if (state === null) return null;
  const ended = await readEndedTimelines(paths.log, state.timeline);
  return { state, bases: await readBases(paths), marks: await readMarks(paths), ended };
}

async function readText(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

/** By a rename, so that a reader never sees half of the file. */
function writeJson(path: string, value: unknown, group: number | null): void {
  writeFileSync(`${path}.new`, JSON.stringify(value), { mode: 0o600 });
  makeReadable(`${path}.new`, 0o640, group);
  renameSync(`${path}.new`, path);
}
