/**
 * Keeps the histories of branches: copies their log, makes base images when they are due, gives up what is too old. One
 * thing at a time for each history, and never under the lock of a branch, so that no start or stop waits for it. What
 * takes long, a base image and a recovery, holds no lock at all, so that log goes on being copied.
 */
import { join } from 'node:path';
import { BackgroundWork } from '../../../../lib/background-work.ts';
import type { Uids } from '../../../../lib/config.ts';
import type { BranchId } from '../../../../lib/ids.ts';
import type { KeyedLock } from '../../../../lib/keyed-lock.ts';
import { lsnBytes } from '../../../../lib/moments.ts';
import { SharedWork } from '../../../../lib/shared-work.ts';
import { createSteadyTime } from '../../../../lib/steady-time.ts';
import type { BranchRef, HistoryPolicy } from '../../../interface/driver.ts';
import type { BackupEnd, HistoryTurn, LogEnd } from '../../channel/host-calls.ts';
import { detectCloneMethod } from '../copy/method.ts';
import type { Layout } from '../home/layout.ts';
import type { SourcePast } from '../home/records.ts';
import { discard, type TenantDirectories } from '../home/tenant-directories.ts';
import { findPostmaster } from '../postgres/postmaster.ts';
import {
  abandonBase,
  type BaseBegun,
  type BaseCopies,
  findUnusedBase,
  findUnusedLiveBase,
  finishLiveBase,
  hasLogOf,
} from './bases.ts';
import { beginHistory, type SourceHistory } from './begin.ts';
import { requireLogEnd } from './copy-log.ts';
import {
  type BaseRecord,
  historyPaths,
  makeHistoryFolder,
  notBefore,
  readBases,
  readFacts,
  readState,
  writeState,
} from './files.ts';
import {
  continuedFrom,
  copyAsleep,
  copyUpTo,
  firstPiece,
  isNewWrite,
  type KeptLog,
  newestWrite,
  type SeenLog,
  seenLog,
} from './keep-log.ts';
import { findKept, type Kept, updatePast } from './past.ts';
import { isBaseDue } from './policy.ts';
import { noHistory, Pruner } from './prune.ts';
import { keepSnapshot } from './snapshots.ts';

export interface HistoryParts {
  readonly layout: Layout;
  readonly tenants: TenantDirectories;
  readonly locks: KeyedLock;
  readonly uids: Uids | null;
  readonly copies: BaseCopies;
}

export class Histories {
  readonly #parts: HistoryParts;
  readonly #begun = new Map<string, BaseBegun & { readonly historyId: string }>();
  /** When the log of a history was last written to, as of its last copy: most turns find nothing new. */
  readonly #seen = new Map<string, SeenLog>();
  /** Servers that were told to keep no log for a history that is not kept, by their pid. */
  readonly #released = new Map<string, number>();
  readonly #pruner = new Pruner();
  /** How many recoveries read a history. */
  readonly #readers = new Map<string, number>();
  /** Base images of branches that are asleep, for callers that need not wait for their end. */
  readonly #bases: BackgroundWork;
  readonly #making = new SharedWork();
  readonly #time = createSteadyTime();

  constructor(parts: HistoryParts) {
    this.#parts = parts;
    this.#bases = new BackgroundWork(parts.copies.waitMs);
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
    const { isAwake, isBaseDue } = await this.#locked(kept.historyId, () => this.#bringUpToDate(ref, kept, policy));
    if (isBaseDue && !isAwake) {
      const isStillDue = () => this.#isBaseDue(kept, policy, false);
      await this.#bases.run(kept.historyId, () => this.#makeBaseAsleep(ref, kept, isStillDue));
    }
    return this.#locked(kept.historyId, async () => {
      const isRead = this.#readers.has(kept.historyId);
      const now = this.#time.now();
      const pruning = { ...policy, now, layout: this.#parts.layout, group: this.#group, isRead };
      const history = await this.#pruner.tell(kept.historyId, kept.paths, pruning);
      const wantsBase = isAwake && isBaseDue;
      return { history, wantsLog: wantsBase || (isAwake && (await this.#hasNewLog(kept))), wantsBase, keepsLog: false };
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

  async #bringUpToDate(ref: BranchRef, kept: Kept, policy: HistoryPolicy) {
    await this.#begin(ref, kept);
    await this.#useOrRemoveUnused(ref, kept);
    const isAwake = (await findPostmaster(kept.data, ref.tenantUid)) !== null;
    if (!isAwake) await copyAsleep(this.#logOf(ref, kept));
    return { isAwake, isBaseDue: await this.#isBaseDue(kept, policy, isAwake) };
  }

  /** Under the lock that is held from the publishing of such a base image to its use, so only a kill separates them. */
  async #useOrRemoveUnused(ref: BranchRef, kept: Kept): Promise<void> {
    const unused = await findUnusedLiveBase(kept.paths);
    if (unused === null || this.#readers.has(kept.historyId)) return;
    if (await hasLogOf(unused, kept.data)) return this.#continueFrom(ref, kept, unused);
    this.#pruner.forget(kept.historyId);
    await discard(join(kept.paths.bases, unused.name), this.#parts.layout);
  }

  /** A running source, whose log has to be copied up to where this one's begins before this history can continue it. */
  async waitsFor(ref: BranchRef): Promise<BranchId | null> {
    const kept = await this.find(ref);
    const of = kept?.record.past?.parent;
    if (!kept || of === undefined || (await readState(kept.paths)) !== null) return null;
    const source = await this.find({ ...ref, branchId: of.branchId });
    if (source?.historyId !== of.historyId || !(await findPostmaster(source.data, ref.tenantUid))) return null;
    const state = await readState(source.paths);
    if (state === null) return of.branchId;
    const isBehind = state.copied !== null && lsnBytes(state.copied.lsn) < lsnBytes(of.until);
    return isBehind ? of.branchId : null;
  }

  /** Copies the log of a running server up to a position that it has flushed, or a piece of it. */
  async copyUpTo(ref: BranchRef, end: LogEnd): Promise<string | null> {
    const kept = await this.#require(ref);
    requireLogEnd(end);
    return this.#locked(kept.historyId, async () => {
      await this.#begin(ref, kept);
      const writtenAt = await newestWrite(kept);
      const piece = await firstPiece(kept, end);
      const reached = await copyUpTo(this.#logOf(ref, kept), piece);
      if (piece === end) this.#seen.set(kept.historyId, seenLog(writtenAt, end));
      return reached;
    });
  }

  /** After a stop: the rest of the log, in the background. */
  async catchUp(ref: BranchRef): Promise<void> {
    const kept = await this.find(ref);
    if (kept === null || (await readState(kept.paths)) === null) return;
    await this.#locked(kept.historyId, () => copyAsleep(this.#logOf(ref, kept)));
  }

  /** Without the lock: a large copy takes long, and log goes on being copied meanwhile. */
  async beginBase(ref: BranchRef): Promise<string> {
    const kept = await this.#require(ref);
    for (const [token, { historyId }] of this.#begun)
      if (historyId === kept.historyId) await this.abandonBase(ref, token);
    const source = { data: kept.data, tenantUid: ref.tenantUid, group: this.#group };
    const begun = await this.#parts.copies.ofRunning(kept.paths, source);
    this.#begun.set(begun.name, { ...begun, historyId: kept.historyId });
    return begun.name;
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
      await copyUpTo(this.#logOf(ref, kept), end);
    });
  }

  async abandonBase(ref: BranchRef, token: string): Promise<void> {
    const kept = await this.#require(ref);
    if (this.#begun.delete(token)) await abandonBase(kept.paths, token);
  }

  find(ref: BranchRef): Promise<Kept | null> {
    return findKept(this.#parts, ref);
  }

  /** Brings the history of a branch up to its end if it is asleep, for a recovery that is about to read it. */
  async facts(ref: BranchRef, kept: Kept) {
    const isAwake = (await findPostmaster(kept.data, ref.tenantUid)) !== null;
    if (!isAwake) {
      await this.#locked(kept.historyId, async () => {
        await this.#begin(ref, kept);
        await copyAsleep(this.#logOf(ref, kept));
      });
      await this.#makeBaseAsleep(ref, kept, async () => (await readBases(kept.paths)).length === 0);
    }
    return readFacts(kept.paths);
  }

  /** While it is read nothing is given up of it; log goes on being copied. */
  async reading<T>(historyId: string, work: () => Promise<T>): Promise<T> {
    await this.#locked(historyId, async () => this.#countReader(historyId, 1));
    try {
      return await work();
    } finally {
      this.#countReader(historyId, -1);
    }
  }

  #countReader(historyId: string, change: 1 | -1): void {
    const count = (this.#readers.get(historyId) ?? 0) + change;
    if (count > 0) this.#readers.set(historyId, count);
    else this.#readers.delete(historyId);
  }

  async #require(ref: BranchRef): Promise<Kept> {
    await this.#parts.tenants.check(ref);
    const kept = await this.find(ref);
    if (kept === null) throw new Error(`branch ${ref.branchId} has no data`);
    return kept;
  }

  #logOf({ branchId, tenantUid }: BranchRef, { data, paths }: Kept): KeptLog {
    return { branchId, tenantUid, data, paths, group: this.#group };
  }

  #locked<T>(historyId: string, work: () => Promise<T>): Promise<T> {
    return this.#parts.locks.exclusive(`history ${historyId}`, work);
  }

  async #begin(ref: BranchRef, { record, paths, data }: Kept): Promise<void> {
    if ((await readState(paths)) !== null) return;
    const { layout } = this.#parts;
    const group = this.#group;
    for (const folder of [layout.historiesOf(ref.projectId), paths.directory, paths.log, paths.bases]) {
      makeHistoryFolder(folder, group);
    }
    const of = record.past?.parent;
    const begin = (source: SourceHistory | null) =>
      beginHistory({ branchId: ref.branchId, paths, record, data, layout, group, source });
    if (of === undefined) return begin(null);
    return this.reading(of.historyId, async () => begin(await this.#sourceHistory(ref, of)));
  }

  /** As far as it reaches by now; that of a source that is asleep is brought up to its end first. */
  async #sourceHistory(ref: BranchRef, of: SourcePast): Promise<SourceHistory | null> {
    const sourceRef = { ...ref, branchId: of.branchId };
    const kept = await this.find(sourceRef);
    if (kept?.historyId === of.historyId) {
      await this.#locked(of.historyId, async () => {
        await this.#begin(sourceRef, kept);
        if (!(await findPostmaster(kept.data, ref.tenantUid))) await copyAsleep(this.#logOf(sourceRef, kept));
      });
    }
    const paths = historyPaths(this.#parts.layout.history(ref.projectId, of.historyId));
    const facts = await readFacts(paths);
    return facts && { paths, ...facts };
  }

  /** The log is copied from a new base image on, if it was interrupted. */
  async #continueFrom(ref: BranchRef, { historyId, paths }: Kept, base: BaseRecord): Promise<void> {
    this.#pruner.forget(historyId);
    const state = await readState(paths);
    if (state === null || state.copied !== null) return;
    writeState(paths, { ...continuedFrom(base, state), branchId: ref.branchId }, this.#group);
  }

  async #isBaseDue({ paths }: Kept, { retentionSeconds }: HistoryPolicy, isAwake: boolean): Promise<boolean> {
    const [state, bases] = [await readState(paths), await readBases(paths)];
    const last = bases.at(-1);
    const copies = bases.findLast(({ isLinked }) => !isLinked);
    const isShared = copies === undefined ? await this.#sharesBlocks() : copies.bytesShared > 0;
    const { copied = null, timeline = 1 } = state ?? {};
    return isBaseDue({ last, copied, timeline, isAwake, isShared, now: new Date(), retentionSeconds });
  }

  #shares: Promise<boolean> | undefined;
  #sharesBlocks(): Promise<boolean> {
    this.#shares ??= detectCloneMethod(this.#parts.layout.work).then((method) => method === 'reflink');
    return this.#shares;
  }

  /**
   * A caller that comes while a base image is being made waits for that one. A caller that comes later asks again
   * whether it needs one, because it may have found so before the earlier one was finished.
   */
  #makeBaseAsleep(ref: BranchRef, kept: Kept, isNeeded: () => Promise<boolean>): Promise<void> {
    return this.#making.join(kept.historyId, async () => {
      if (await isNeeded()) await this.#copyAsleep(ref, kept);
    });
  }

  async #copyAsleep(ref: BranchRef, kept: Kept): Promise<void> {
    const source = { data: kept.data, tenantUid: ref.tenantUid, group: this.#group };
    const state = await readState(kept.paths);
    const base = (await findUnusedBase(kept)) ?? (await this.#parts.copies.ofSleeping(kept.paths, source, state));
    if (base === null) return;
    await this.#locked(kept.historyId, async () => {
      await this.#continueFrom(ref, kept, base);
      await copyAsleep(this.#logOf(ref, kept));
    });
  }

  async #drop(ref: BranchRef, { historyId, record }: Kept): Promise<void> {
    const { layout } = this.#parts;
    await this.#locked(historyId, () => discard(layout.history(ref.projectId, historyId), layout));
    this.#seen.delete(historyId);
    this.#pruner.forget(historyId);
    // A history that is kept again later begins then.
    if (record.past?.template || record.past?.parent) {
      await updatePast(this.#parts, ref, ({ historyId: id, madeAt }) => ({ historyId: id, madeAt, template: null }));
    }
  }

  async #hasNewLog(kept: Kept): Promise<boolean> {
    const seen = this.#seen.get(kept.historyId);
    const newest = await newestWrite(kept);
    return seen === undefined || isNewWrite(newest, seen);
  }
}
