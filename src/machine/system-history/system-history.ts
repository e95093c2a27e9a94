/**
 * The past of the embedded system database, in the files that branches have too: base images, and the log, copied every
 * few seconds up to what the server has flushed. A replication slot keeps what is not copied yet, within a bound; what
 * is lost beyond it becomes a gap, behind which a new base image begins. At a stop the rest of the log follows.
 */
import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { renameDurably } from '../../compute/local/host/copy/tree.ts';
import { copyLog, LogLostError } from '../../compute/local/host/history/copy-log.ts';
import {
  appendMark,
  type BaseRecord,
  type HistoryPaths,
  type HistoryState,
  historyPaths,
  makeHistoryFolder,
  notBefore,
  readBases,
  readState,
  writeState,
} from '../../compute/local/host/history/files.ts';
import { isBaseDue } from '../../compute/local/host/history/policy.ts';
import { prune } from '../../compute/local/host/history/prune.ts';
import type { Layout } from '../../compute/local/host/home/layout.ts';
import { readControlFile } from '../../compute/local/host/postgres/control-file.ts';
import { segmentBytes } from '../../compute/local/host/postgres/wal-segments.ts';
import { delay } from '../../lib/clock.ts';
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { type LogPosition, lsnBytes, lsnText } from '../../lib/moments.ts';
import { createSteadyTime } from '../../lib/steady-time.ts';
import { makeBase, removeUnfinishedBases } from './base.ts';
import { HistorySession, type ServerPosition, slotName } from './session.ts';

export interface SystemHistoryParts {
  readonly pgVersion: number;
  readonly layout: Layout;
  /** Where the histories of system databases are kept; this one gets a folder of its own in it. */
  readonly folder: string;
  /** Names that folder; beside the data directory, so that other data gets another history. */
  readonly idFile: string;
  readonly dataDirectory: string;
  readonly uid: number | null;
  /** The group of Catnap's child processes, which may read the history. */
  readonly group: number | null;
  readonly connection: { readonly path: string; readonly username: string; readonly password: string };
  /** How long moments are kept. */
  readonly retentionSeconds: () => Promise<number>;
  readonly log: Logger;
  readonly everyMs?: number;
}

const everyMsDefault = 2_000;
/** The record of a shutdown's checkpoint, which is the last one, is shorter than this. */
const checkpointRecordBytes = 1_024n;
/** A position is noted once in this time. */
const markEveryMs = 10_000;

export class SystemHistory {
  readonly #parts: SystemHistoryParts;
  readonly #paths: HistoryPaths;
  readonly #session: HistorySession;
  readonly #ending = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #lastProblem = '';
  #markedAtMs: number | null = null;
  readonly #time = createSteadyTime();

  private constructor(parts: SystemHistoryParts, historyId: string) {
    this.#parts = parts;
    this.#paths = historyPaths(join(parts.folder, historyId));
    this.#session = new HistorySession(parts.connection);
  }

  static async open(parts: SystemHistoryParts): Promise<SystemHistory> {
    const history = new SystemHistory(parts, await ensureId(parts.idFile));
    const { directory, log, bases } = history.#paths;
    for (const folder of [parts.folder, directory, log, bases]) makeHistoryFolder(folder, parts.group);
    await removeUnfinishedBases(history.#paths);
    return history;
  }

  get paths(): HistoryPaths {
    return this.#paths;
  }

  start(): void {
    this.#loop = this.#run(this.#ending.signal);
  }

  /** Ends the loop and the session, before the server is stopped. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#loop;
    await this.#session.end();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.keep();
        this.#lastProblem = '';
      } catch (error) {
        const problem = errorText(error);
        if (problem !== this.#lastProblem && !signal.aborted) {
          this.#parts.log.error({ reason: problem }, 'the history of the system database is not kept');
        }
        this.#lastProblem = problem;
      }
      await delay(this.#parts.everyMs ?? everyMsDefault, signal);
    }
  }

  /** One round: copies what is new, makes a base image if one is due, gives up what is too old. */
  async keep(): Promise<void> {
    await this.#session.ensureSlot();
    const flushed = await this.#session.flushed();
    const bases = await readBases(this.#paths);
    const state = await readState(this.#paths);
    const last = bases.at(-1);
    if (!state?.copied || last === undefined || state.timeline !== flushed.timeline) {
      return this.#beginAnew(state, flushed);
    }
    try {
      await this.#copyUntil(state, flushed);
    } catch (error) {
      if (!(error instanceof LogLostError)) throw error;
      this.#parts.log.error({ reason: error.message }, 'moments of the system database are lost; a new base follows');
      return this.#beginAnew(state, flushed);
    }
    const retentionSeconds = await this.#parts.retentionSeconds();
    const { timeline } = flushed;
    const asks = { last, copied: flushed, timeline, isAwake: true, isShared: false, now: new Date(), retentionSeconds };
    if (!isBaseDue(asks)) return;
    await this.#addBase();
    const { layout, group } = this.#parts;
    await prune(this.#paths, { retentionSeconds, now: this.#time.now(), layout, group, isRead: false });
  }

  /** After a clean stop of the server: its last records, among them the checkpoint that ends it. */
  async copyRest(): Promise<void> {
    const state = await readState(this.#paths);
    const { shutDown, timeline, checkpoint } = await readControlFile(this.#parts.dataDirectory);
    if (!state?.copied || !shutDown || state.timeline !== timeline) return;
    const segmentEnd = (checkpoint / segmentBytes + 1n) * segmentBytes;
    const end = checkpoint + checkpointRecordBytes;
    const to = end < segmentEnd ? end : segmentEnd;
    await this.#copy({ timeline, from: pageOf(state.copied), to });
    // Not the end of what was copied: the next start writes right behind the checkpoint's record.
    const copied = { at: notBefore(state, new Date().toISOString()), lsn: lsnText(checkpoint) };
    writeState(this.#paths, { ...state, copied }, this.#parts.group);
  }

  async #copyUntil(state: HistoryState, { at: found, lsn, timeline }: ServerPosition): Promise<void> {
    const at = notBefore(state, found);
    const from = state.copied ?? { at, lsn };
    await this.#copy({ timeline, from: pageOf(from), to: lsnBytes(lsn) });
    writeState(this.#paths, { ...state, copied: { at, lsn } }, this.#parts.group);
    await this.#mark({ at, lsn });
    await this.#session.advanceSlot(lsnBytes(lsn));
  }

  #copy(range: { readonly timeline: number; readonly from: bigint; readonly to: bigint }): Promise<void> {
    const { dataDirectory, uid, group } = this.#parts;
    const copy = { source: join(dataDirectory, 'pg_wal'), target: this.#paths.log, sourceOwner: uid, group };
    return copyLog(copy, range);
  }

  /** Everything before is behind a gap: the next moment that can be given is that of a new base image. */
  async #beginAnew(old: HistoryState | null, flushed: ServerPosition): Promise<void> {
    const { pgVersion, group } = this.#parts;
    const { timeline, at } = flushed;
    const lostSince = old?.copied ?? old?.lostSince ?? null;
    const gone = { branchId: 'system', pgVersion, timeline, copied: null, gaps: old?.gaps ?? [], lostSince };
    writeState(this.#paths, gone, group);
    const segmentStart = lsnBytes(flushed.lsn) - (lsnBytes(flushed.lsn) % segmentBytes);
    await this.#copyUntil({ ...gone, copied: { at, lsn: lsnText(segmentStart) } }, flushed);
    const base = await this.#addBase();
    const state = await readState(this.#paths);
    if (state === null || lostSince === null) return;
    const gaps = [...state.gaps, { from: lostSince, until: { at: base.at, lsn: base.lsn } }];
    writeState(this.#paths, { ...state, gaps, lostSince: null }, group);
  }

  /** The log up to the backup's end is here before the image counts as a base. */
  async #addBase(): Promise<BaseRecord> {
    const { dataDirectory, uid, group } = this.#parts;
    const source = { data: dataDirectory, tenantUid: uid, group };
    return makeBase(this.#session, this.#paths, source, async (end) => {
      const state = await readState(this.#paths);
      if (state === null) throw new Error('there is no log for the base image');
      await this.#copyUntil(state, end);
    });
  }

  async #mark(position: LogPosition): Promise<void> {
    const nowMs = performance.now();
    if (this.#markedAtMs !== null && nowMs - this.#markedAtMs < markEveryMs) return;
    this.#markedAtMs = nowMs;
    await appendMark(this.#paths, position, this.#parts.group);
  }
}

/** Without a history, nothing would ever advance the slot that one has left behind. */
export async function forgetSlot(server: Pick<SystemHistoryParts, 'dataDirectory' | 'connection'>): Promise<void> {
  const isThere = await stat(join(server.dataDirectory, 'pg_replslot', slotName)).catch(() => null);
  if (isThere === null) return;
  const session = new HistorySession(server.connection);
  await session.dropSlot().finally(() => session.end());
}

/** The last page of what was copied may have been filled up since. */
const pageOf = ({ lsn }: LogPosition) => lsnBytes(lsn) - (lsnBytes(lsn) % 8_192n);

async function ensureId(path: string): Promise<string> {
  const known = await readFile(path, 'utf8').catch(() => '');
  if (/^[a-z0-9-]{8,60}$/.test(known)) return known;
  const made = randomBytes(8).toString('hex');
  await writeFile(`${path}.new`, made, { mode: 0o600, flush: true });
  await renameDurably(`${path}.new`, path);
  return made;
}
