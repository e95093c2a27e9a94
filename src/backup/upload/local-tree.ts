/**
 * Reads the histories that the driver keeps on this machine. The files are written by a process with other rights while
 * they are read here: each is replaced by a rename or grows at its end, and may be gone at any time.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isSegment } from '../../lib/log-segments.ts';
import { byAge, type LogPosition } from '../../lib/moments.ts';
import { type EndedTimeline, endedTimelines, isTimelineFile, timelineFile } from '../../lib/timelines.ts';
import type { BaseImage, HistoryDocument } from '../documents.ts';
import type { HistoryRef } from '../layout.ts';

export interface LocalLogFile {
  readonly name: string;
  /** The copy of the newest segment grows. */
  readonly bytes: number;
}

export interface LocalHistory {
  readonly ref: HistoryRef;
  readonly directory: string;
  readonly branchId: string;
  readonly pgVersion: number;
  readonly timeline: number;
  /** The timelines that the log was on before. */
  readonly ended: readonly EndedTimeline[];
  /** The log files hold everything up to here; null while there is no log. */
  readonly until: LogPosition | null;
  readonly gaps: HistoryDocument['gaps'];
  /** Oldest first. */
  readonly bases: readonly BaseImage[];
  /** In the order of the log. */
  readonly log: readonly LocalLogFile[];
  readonly marks: readonly LogPosition[];
}

interface StateFile {
  readonly branchId: string;
  readonly pgVersion: number;
  readonly timeline: number;
  readonly copied: LogPosition | null;
  readonly lostSince: LogPosition | null;
  readonly gaps: HistoryDocument['gaps'];
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const isName = (name: string) => namePattern.test(name);

export const baseFolder = (directory: string, base: string) => join(directory, 'bases', base, 'pgdata');
export const logPath = (directory: string, file: string) => join(directory, 'log', file);

/** Fails if the tree itself is not there: a disk that is not mounted must not look like a machine without data. */
export async function listLocalHistories(root: string): Promise<HistoryRef[]> {
  const refs: HistoryRef[] = [];
  for (const projectId of (await readdir(root)).filter(isName)) {
    const found = await readdir(join(root, projectId)).catch(absent);
    for (const historyId of (found ?? []).filter(isName)) refs.push({ projectId, historyId });
  }
  return refs;
}

/** Null for one that is gone, or about to be made. The state is read first, so the log reaches at least that far. */
export async function readLocalHistory(root: string, ref: HistoryRef): Promise<LocalHistory | null> {
  const directory = join(root, ref.projectId, ref.historyId);
  const state = await readJson<StateFile>(join(directory, 'history.json'));
  if (state === null) return null;
  const bases = await readBases(join(directory, 'bases'));
  const { branchId, pgVersion, timeline, copied, lostSince, gaps } = state;
  const ended = endedTimelines((await readText(logPath(directory, timelineFile(timeline)))) ?? '');
  return {
    ref,
    directory,
    branchId,
    pgVersion,
    timeline,
    ended,
    until: copied ?? lostSince,
    gaps,
    bases,
    log: await readLog(join(directory, 'log')),
    marks: await readMarks(join(directory, 'marks')),
  };
}

/** Those that can be read. */
export async function readLocalHistories(root: string): Promise<LocalHistory[]> {
  const found: LocalHistory[] = [];
  for (const ref of await listLocalHistories(root).catch(() => [])) {
    const local = await readLocalHistory(root, ref).catch(() => null);
    if (local !== null) found.push(local);
  }
  return found;
}

async function readBases(folder: string): Promise<BaseImage[]> {
  const names = ((await readdir(folder).catch(absent)) ?? []).filter(isName);
  const found: BaseImage[] = [];
  for (const name of names) {
    const record = await readJson<BaseImage>(join(folder, name, 'base.json'));
    if (record === null) continue;
    const { timeline, start, lsn, at, bytes, isLive } = record;
    const firstSecret = (await readText(join(folder, name, 'first-secret')))?.trim() ?? null;
    found.push({ name, timeline, start, lsn, at, bytes, isLive, firstSecret });
  }
  return found.sort(byAge);
}

async function readLog(folder: string): Promise<LocalLogFile[]> {
  const names = ((await readdir(folder).catch(absent)) ?? []).filter((one) => isSegment(one) || isTimelineFile(one));
  const files: LocalLogFile[] = [];
  for (const name of names.sort()) {
    const found = await stat(join(folder, name)).catch(absent);
    if (found) files.push({ name, bytes: found.size });
  }
  return files;
}

async function readMarks(path: string): Promise<LogPosition[]> {
  return ((await readText(path)) ?? '').split('\n').flatMap((line) => {
    const [at, lsn] = line.split(' ');
    return at !== undefined && lsn !== undefined && /^\d{4}-.*Z$/.test(at) ? [{ at, lsn }] : [];
  });
}

async function readJson<T>(path: string): Promise<T | null> {
  const text = await readText(path);
  return text === null ? null : (JSON.parse(text) as T);
}

async function readText(path: string): Promise<string | null> {
  return (await readFile(path, 'utf8').catch(absent)) ?? null;
}

/** Gone meanwhile, or not a folder: nothing to upload. */
function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
}
