/**
 * Keeps the histories of branches: copies their log, makes base images when they are due, gives up what is too old. One
 * thing at a time for each history, and never under the lock of a branch, so that no start or stop waits for it.
 */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Uids } from '../../../../lib/config.ts';
import type { KeyedLock } from '../../../../lib/keyed-lock.ts';
import { lsnBytes, lsnText } from '../../../../lib/moments.ts';
import { createSteadyTime } from '../../../../lib/steady-time.ts';
import type { BranchRef, HistoryPolicy } from '../../../interface/driver.ts';
import type { BackupEnd, HistoryTurn, LogEnd } from '../../channel/host-calls.ts';
import { newPast } from '../branches/create.ts';
import { detectCloneMethod } from '../copy/method.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import { branchLock } from '../home/lock-names.ts';
import { type BranchPast, type BranchRecord, readBranchRecord, writeBranchRecord } from '../home/records.ts';
import { discard, type TenantDirectories } from '../home/tenant-directories.ts';
import { readControlFile } from '../postgres/control-file.ts';
import { findPostmaster } from '../postgres/postmaster.ts';
import { segmentBytes, segmentName } from '../postgres/wal-segments.ts';
import {
  abandonBase,
  type BaseBegun,
  beginLiveBase,
  finishLiveBase,
  makeBaseAsleep,
  makeBaseOfTemplate,
} from './bases.ts';
import { copyLog, LogLostError, requireLogEnd, withinSegment } from './copy-log.ts';
import {
  appendMark,
  type BaseRecord,
  type HistoryPaths,
  historyPaths,
  makeHistoryFolder,
  notBefore,
  readBases,
  readMarks,
  readState,
  writeState,
} from './files.ts';
import { isBaseDue } from './policy.ts';
import { noHistory, Pruner } from './prune.ts';
import { keepSnapshot } from './snapshots.ts';

export interface HistoryParts {
  readonly layout: Layout;
  readonly tenants: TenantDirectories;
  readonly locks: KeyedLock;
  readonly uids: Uids | null;
}

/** A branch's data, and the history that belongs to it. */
export interface Kept {
  readonly data: string;
  readonly record: BranchRecord;
  readonly historyId: string;
  readonly paths: HistoryPaths;
}

/** The shutdown record, behind which nothing was written. */
const recordBytesMax = 8_192n;

export class Histories {
  readonly #parts: HistoryParts;
  readonly #begun = new Map<string, BaseBegun & { readonly historyId: string }>();
  /** When the log of a history was last written to, as of its last copy: most turns find nothing new. */
  readonly #seen = new Map<string, number>();
  /** Servers that were told to keep no log for a history that is not kept, by their pid. */
  readonly #released = new Map<string, number>();
  readonly #pruner = new Pruner();
  readonly #time = createSteadyTime();

  constructor(parts: HistoryParts) {
    this.#parts = parts;
  }

  get #group(): number | null {
    return this.#parts.uids?.service ?? null;
  }

  /** What can be done without the server is done; what needs its help is asked for. Null for a branch without data. */
  async turn(ref: BranchRef, policy: HistoryPolicy): Promise<HistoryTurn | null> {
    await this.#parts.tenants.check(ref);
    const kept = await this.find(ref);
    if (kept === null) return null;
    if (policy.retentionSeconds === 0) {
      await this.#drop(ref, kept);
      const server = await findPostmaster(kept.data, ref.tenantUid);
      const keepsLog = server !== null && this.#released.get(kept.historyId) !== server.pid;
      if (server) this.#released.set(kept.historyId, server.pid);
      return { history: noHistory, wantsLog: false, wantsBase: false, keepsLog };
    }
    this.#released.delete(kept.historyId);
    if (policy.isSnapshot) return this.#keepSnapshot(ref, kept.historyId);
    return this.#locked(kept.historyId, async () => {
      await this.#begin(ref, kept);
      const isAwake = (await findPostmaster(kept.data, ref.tenantUid)) !== null;
      if (!isAwake) await this.#copyAsleep(ref, kept);
      const wantsBase = await this.#isBaseDue(kept, policy, isAwake);
      if (wantsBase && !isAwake) await this.#makeBaseAsleep(ref, kept);
      const pruning = { ...policy, now: this.#time.now(), layout: this.#parts.layout, group: this.#group };
      const history = await this.#pruner.tell(kept.historyId, kept.paths, pruning);
      const wantsLog = isAwake && (await this.#hasNewLog(kept));
      const needs = { wantsLog: wantsLog || (isAwake && wantsBase), wantsBase: isAwake && wantsBase };
      return { history, ...needs, keepsLog: false };
    });
  }

  /** Looked for again under the lock: it may have been deleted meanwhile. */
  #keepSnapshot(ref: BranchRef, historyId: string): Promise<HistoryTurn | null> {
    return this.#locked(historyId, async () => {
      const kept = await this.find(ref);
      const history = kept && (await keepSnapshot(this.#parts.layout, ref, kept, this.#group));
      return history && { history, wantsLog: false, wantsBase: false, keepsLog: false };
    });
  }

  /** Copies the log of a running server up to a position that it has flushed. */
  async copyUpTo(ref: BranchRef, end: LogEnd): Promise<void> {
    const kept = await this.#require(ref);
    requireLogEnd(end);
    await this.#locked(kept.historyId, async () => {
      await this.#begin(ref, kept);
      const writtenAt = await this.#newestWrite(kept);
      await this.#copy(ref, kept, end);
      this.#seen.set(kept.historyId, writtenAt);
    });
  }

  /** After a stop: the rest of the log, in the background. */
  async catchUp(ref: BranchRef): Promise<void> {
    const kept = await this.find(ref);
    if (kept === null || (await readState(kept.paths)) === null) return;
    await this.#locked(kept.historyId, () => this.#copyAsleep(ref, kept));
  }

  async beginBase(ref: BranchRef): Promise<string> {
    const kept = await this.#require(ref);
    return this.#locked(kept.historyId, async () => {
      const group = this.#group;
      const begun = await beginLiveBase(kept.paths, { data: kept.data, tenantUid: ref.tenantUid, group });
      this.#begun.set(begun.name, { ...begun, historyId: kept.historyId });
      return begun.name;
    });
  }

  async finishBase(ref: BranchRef, token: string, end: BackupEnd & LogEnd): Promise<void> {
    const kept = await this.#require(ref);
    const begun = this.#begun.get(token);
    if (begun?.historyId !== kept.historyId || !this.#begun.delete(token)) throw new Error('no such base image');
    requireLogEnd(end);
    await this.#locked(kept.historyId, async () => {
      const at = notBefore(await readState(kept.paths), end.at);
      const base = await finishLiveBase(kept.paths, begun, { ...end, at }, this.#group);
      await this.#continueFrom(ref, kept, base);
      await this.#copy(ref, kept, end);
    });
  }

  async abandonBase(ref: BranchRef, token: string): Promise<void> {
    const kept = await this.#require(ref);
    if (this.#begun.delete(token)) await abandonBase(kept.paths, token);
  }

  async find(ref: BranchRef): Promise<Kept | null> {
    const { layout } = this.#parts;
    const home = layout.branch(ref.projectId, ref.branchId);
    const record = await readBranchRecord(home);
    if (record === null) return null;
    const { historyId } = record.past ?? (await this.#updatePast(ref, (past) => past));
    const paths = historyPaths(layout.history(ref.projectId, historyId));
    return { data: dataDirectory(home), record, historyId, paths };
  }

  /** Brings the history of a branch up to its end if it is asleep, for a recovery that is about to read it. */
  async facts(ref: BranchRef, kept: Kept) {
    const isAwake = (await findPostmaster(kept.data, ref.tenantUid)) !== null;
    if (!isAwake) await this.catchUp(ref);
    const state = await readState(kept.paths);
    return state === null ? null : { state, bases: await readBases(kept.paths), marks: await readMarks(kept.paths) };
  }

  /** While it is read nothing is pruned. */
  reading<T>(historyId: string, work: () => Promise<T>): Promise<T> {
    return this.#parts.locks.shared(`history ${historyId}`, work);
  }

  async #require(ref: BranchRef): Promise<Kept> {
    await this.#parts.tenants.check(ref);
    const kept = await this.find(ref);
    if (kept === null) throw new Error(`branch ${ref.branchId} has no data`);
    return kept;
  }

  #locked<T>(historyId: string, work: () => Promise<T>): Promise<T> {
    return this.#parts.locks.exclusive(`history ${historyId}`, work);
  }

  /** A directory that an older version made has none yet. */
  #updatePast(ref: BranchRef, change: (past: BranchPast) => BranchPast): Promise<BranchPast> {
    const { layout, locks } = this.#parts;
    return locks.exclusive(branchLock(ref), async () => {
      const home = layout.branch(ref.projectId, ref.branchId);
      const record = await readBranchRecord(home);
      if (record === null) throw new Error(`branch ${ref.branchId} has no data`);
      const past = change(record.past ?? newPast(null));
      await writeBranchRecord(home, { ...record, past });
      return past;
    });
  }

  /** Makes the folders of a history, with the template as its first base image if the branch began as its copy. */
  async #begin(ref: BranchRef, { record, paths, data }: Kept): Promise<void> {
    if ((await readState(paths)) !== null) return;
    const { layout } = this.#parts;
    const group = this.#group;
    for (const folder of [layout.historiesOf(ref.projectId), paths.directory, paths.log, paths.bases]) {
      makeHistoryFolder(folder, group);
    }
    const { pgVersion, past } = record;
    const blank = { branchId: ref.branchId, pgVersion, timeline: 1, copied: null, gaps: [], lostSince: null };
    const base = past?.template ? await this.#linkTemplate(record, paths, data) : null;
    const copied = base === null ? null : { at: base.at, lsn: base.start };
    writeState(paths, { ...blank, copied, timeline: base?.timeline ?? 1 }, group);
  }

  async #linkTemplate(
    { pgVersion, past }: BranchRecord,
    paths: HistoryPaths,
    data: string,
  ): Promise<BaseRecord | null> {
    if (!past?.template) return null;
    const template = this.#parts.layout.template(pgVersion, past.template);
    const facts = await readControlFile(dataDirectory(template)).catch(() => null);
    // After a sleep or two the log since then may be gone.
    const first = facts && segmentName(facts.timeline, Number(facts.redo / segmentBytes));
    if (first === null || !(await stat(join(data, 'pg_wal', first)).catch(() => null))) return null;
    const secret = await readFile(join(template, 'secret'), 'utf8');
    const given = { dataDirectory: dataDirectory(template), secret };
    return makeBaseOfTemplate(paths, given, { at: past.madeAt, group: this.#group });
  }

  async #copyAsleep(ref: BranchRef, kept: Kept): Promise<void> {
    const state = await readState(kept.paths);
    const control = await readControlFile(kept.data).catch(() => null);
    if (state?.copied == null || !control?.shutDown) return;
    if (control.timeline === state.timeline && lsnBytes(state.copied.lsn) >= control.checkpoint) return;
    const at = control.writtenAt.toISOString();
    await this.#copy(ref, kept, { timeline: control.timeline, lsn: control.checkpointLsn, at }, recordBytesMax);
  }

  /** `beyond` bytes are copied too, and copied again when the log continues. */
  async #copy(ref: BranchRef, { data, paths }: Kept, end: LogEnd, beyond = 0n): Promise<void> {
    const state = await readState(paths);
    if (state?.copied == null) return;
    const [from, to] = [lsnBytes(state.copied.lsn), lsnBytes(end.lsn)];
    if (end.timeline === state.timeline && to < from) return;
    const position = { at: notBefore(state, end.at), lsn: lsnText(to) };
    const group = this.#group;
    try {
      if (end.timeline !== state.timeline) throw new LogLostError(`of timeline ${state.timeline}`);
      const copy = { source: join(data, 'pg_wal'), target: paths.log, sourceOwner: ref.tenantUid, group };
      await copyLog(copy, { timeline: end.timeline, from, to: withinSegment(to, beyond) });
    } catch (error) {
      if (!(error instanceof LogLostError)) throw error;
      writeState(paths, { ...state, copied: null, lostSince: state.copied }, group);
      return;
    }
    if (to === from && state.copied.at >= position.at) return;
    writeState(paths, { ...state, branchId: ref.branchId, copied: position }, group);
    await appendMark(paths, position, group);
  }

  /** The log is copied from a new base image on, if it was interrupted. */
  async #continueFrom(ref: BranchRef, { historyId, paths }: Kept, base: BaseRecord): Promise<void> {
    this.#pruner.forget(historyId);
    const state = await readState(paths);
    if (state === null || state.copied !== null) return;
    const { lostSince: from, gaps } = state;
    const until = { at: base.at, lsn: base.lsn };
    writeState(
      paths,
      {
        ...state,
        branchId: ref.branchId,
        timeline: base.timeline,
        copied: { at: base.at, lsn: base.start },
        lostSince: null,
        gaps: from === null ? gaps : [...gaps, { from, until }],
      },
      this.#group,
    );
  }

  async #isBaseDue({ paths }: Kept, { retentionSeconds }: HistoryPolicy, isAwake: boolean): Promise<boolean> {
    const [state, bases] = [await readState(paths), await readBases(paths)];
    const last = bases.at(-1);
    const copies = bases.filter(({ bytes }) => bytes > 0).at(-1);
    const isShared = copies === undefined ? await this.#sharesBlocks() : copies.bytesShared > 0;
    return isBaseDue({ last, copied: state?.copied ?? null, isAwake, isShared, now: new Date(), retentionSeconds });
  }

  #shares: Promise<boolean> | undefined;
  #sharesBlocks(): Promise<boolean> {
    this.#shares ??= detectCloneMethod(this.#parts.layout.work).then((method) => method === 'reflink');
    return this.#shares;
  }

  async #makeBaseAsleep(ref: BranchRef, kept: Kept): Promise<void> {
    const source = { data: kept.data, tenantUid: ref.tenantUid, group: this.#group };
    const base = await makeBaseAsleep(kept.paths, source, await readState(kept.paths));
    if (base === null) return;
    await this.#continueFrom(ref, kept, base);
    await this.#copyAsleep(ref, kept);
  }

  async #drop(ref: BranchRef, { historyId, record }: Kept): Promise<void> {
    const { layout } = this.#parts;
    await this.#locked(historyId, () => discard(layout.history(ref.projectId, historyId), layout));
    this.#seen.delete(historyId);
    this.#pruner.forget(historyId);
    // A history that is kept again later begins then, and not with the template.
    if (record.past?.template) await this.#updatePast(ref, (past) => ({ ...past, template: null }));
  }

  async #hasNewLog(kept: Kept): Promise<boolean> {
    const seen = this.#seen.get(kept.historyId);
    const newest = await this.#newestWrite(kept);
    return seen === undefined || newest > seen || newest === Number.POSITIVE_INFINITY;
  }

  /** The server writes to the segment that was copied last, or has gone on to the next, or has left both behind. */
  async #newestWrite({ data, paths }: Kept): Promise<number> {
    const state = await readState(paths);
    if (state?.copied == null) return Number.POSITIVE_INFINITY;
    const at = Number(lsnBytes(state.copied.lsn) / segmentBytes);
    const writtenAt = (number: number, ifGone: number) =>
      stat(join(data, 'pg_wal', segmentName(state.timeline, number))).then(
        ({ mtimeMs }) => mtimeMs,
        () => ifGone,
      );
    return Math.max(await writtenAt(at, Number.POSITIVE_INFINITY), await writtenAt(at + 1, 0));
  }
}
