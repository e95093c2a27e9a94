/**
 * The upload of one history. What the store has is known from its listing and from the history's document; the order of
 * writing makes that enough after a kill at any point: log goes up in order, a base image is named by the document only
 * after all its parts are there, and is taken out of the document before they are removed. A part that is there is not
 * uploaded again, so the upload of a large base image goes on where it was interrupted.
 */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { minuteMs } from '../../lib/clock.ts';
import { segmentAt, segmentBytes } from '../../lib/log-segments.ts';
import { byAge, type LogPosition, lsnBytes } from '../../lib/moments.ts';
import { isTimelineFile } from '../../lib/timelines.ts';
import {
  type BaseImage,
  type HistoryDocument,
  type Sealed,
  type StoredBase,
  writeHistoryDocument,
} from '../documents.ts';
import { basePartKeys, type HistoryRef, logKey, parseKey } from '../layout.ts';
import { seal } from '../seal/seal.ts';
import { isFull, type StoredObject } from '../store/object-store.ts';
import { type FolderEntry, intoParts, listFolder, packFolder } from '../tar.ts';
import { baseFolder, type LocalHistory, logPath } from './local-tree.ts';
import { basesToDrop, type Gap, isFilled, logToDrop, planUpload } from './policy.ts';
import { fromMachine, sourceError } from './source.ts';

/** Enough to find a time within a few minutes of log; the document is written every few seconds. */
const marksMax = 1_000;
const idleMs = minuteMs;
/**
 * Of files, before they are compressed: what an interruption costs at most, unless one file is larger (those of
 * Postgres have 1 GB at most). With another value, base images that are half uploaded begin anew.
 */
const partBytesMax = 128 * 1024 ** 2;

/** What is known of a history without the store. */
export interface LocalReport extends HistoryRef {
  readonly branchId: string;
  readonly localUntil: LogPosition | null;
}

export interface HistoryReport extends LocalReport {
  readonly storedUntil: LogPosition | null;
  /** The first moment that the store can give. */
  readonly storedFrom: LogPosition | null;
  readonly baseCount: number;
  readonly storedBytes: number;
  /** Log and base images of the machine that are not in the store yet. */
  readonly waitingBytes: number;
  readonly gapCount: number;
  readonly problem: string | null;
}

export interface PassOptions {
  readonly retentionSeconds: number;
  readonly now: Date;
  readonly signal: AbortSignal;
}

export interface UploadTarget extends Sealed {
  /** For tests: base images of a few files that have several parts. */
  readonly partBytesMax?: number;
}

export class HistoryUpload {
  readonly #at: UploadTarget;
  readonly #ref: HistoryRef;
  readonly #objects = new Map<string, StoredObject>();
  /** Bytes of each log file, before sealing, that the store has. */
  readonly #log = new Map<string, number>();
  #bases: readonly StoredBase[] = [];
  #until: LogPosition | null = null;
  #gaps: HistoryDocument['gaps'] = [];
  #written = '';
  #writtenAtMs = 0;
  #writing: Promise<void> = Promise.resolve();
  /** What the document in the store says: only that can be restored. */
  #told: Pick<HistoryDocument, 'bases' | 'until'> = { bases: [], until: null };
  #local: LocalHistory | null = null;
  /** Where the machine has given up log that the store never got; the next base image ends that gap. */
  #lostAfter: LogPosition | null = null;
  #wantedBase: BaseImage | null = null;
  /** The base image whose parts are going up, and how much of it is there. */
  #sending: { readonly name: string; bytesDone: number } | null = null;

  /** `document` is null where the store has none that can be trusted. */
  constructor(at: UploadTarget, ref: HistoryRef, objects: readonly StoredObject[], document: HistoryDocument | null) {
    this.#at = at;
    this.#ref = ref;
    for (const object of objects) this.#remember(object);
    // The last segment may have been half full when it was uploaded; it is uploaded once more.
    const last = [...this.#log.keys()]
      .filter((name) => !isTimelineFile(name))
      .sort()
      .at(-1);
    if (last !== undefined) this.#log.set(last, 0);
    if (document === null) return;
    this.#until = document.until;
    this.#gaps = document.gaps;
    this.#bases = document.bases.filter((base) => this.#isWhole(base));
    this.#told = { bases: this.#bases, until: this.#until };
  }

  /**
   * Objects that a listing lacks, or that somebody else has written, count as absent from now on; returns them.
   * `before` is what was known when the listing began: what was uploaded meanwhile need not be in it.
   */
  compare(objects: readonly StoredObject[], before: readonly StoredObject[]): string[] {
    const found = new Map(objects.map((object) => [object.key, object]));
    const wrong = before
      .filter(({ key, version }) => found.get(key)?.version !== version && this.#objects.get(key)?.version === version)
      .map(({ key }) => key);
    for (const key of wrong) this.#forget(key);
    return wrong;
  }

  #isWhole(base: StoredBase): boolean {
    return basePartKeys(this.#ref, base).every((key) => this.#objects.has(key));
  }

  /** What the store has, as far as is known here. */
  objects(): StoredObject[] {
    return [...this.#objects.values()];
  }

  #remember(object: StoredObject, logBytes = Number(segmentBytes)): void {
    const name = parseKey(object.key);
    if (name === null) return;
    this.#objects.set(object.key, object);
    if (name.kind === 'log') this.#log.set(name.file, logBytes);
  }

  #forget(key: string): void {
    this.#objects.delete(key);
    const name = parseKey(key);
    if (name?.kind === 'log') this.#log.delete(name.file);
    if (name?.kind === 'base') this.#bases = this.#bases.filter((base) => base.name !== name.base);
    if (name?.kind === 'document') this.#written = '';
  }

  /** What the machine has now, for the report, while nothing can be uploaded. */
  see(local: LocalHistory): void {
    this.#local = local;
  }

  /** Uploads the log that is new. Returns the base image that should go up next, if one should. */
  async pass(local: LocalHistory, options: PassOptions): Promise<BaseImage | null> {
    this.#local = local;
    const [log, begun] = [new Set(this.#log.keys()), this.#basesInParts()];
    const stored = { bases: this.#bases, until: this.#until, gaps: this.#gaps, log, begun };
    const plan = planUpload({ local, stored, ...options });
    this.#wantedBase = plan.base;
    const keepFrom = new Date(options.now.getTime() - options.retentionSeconds * 1_000);
    try {
      for (const name of plan.log) await this.#putLog(local, name, options.signal);
      if (plan.lostAfter !== null) this.#lostAfter ??= plan.lostAfter;
      else this.#until = local.until;
      this.#gaps = this.#gaps.filter((gap) => !isFilled(gap, local, this.#bases));
      await this.#writeDocument();
    } catch (error) {
      // What is too old makes room, perhaps enough to go on.
      if (isFull(error)) await this.#prune(keepFrom, { isStoreFull: true });
      throw error;
    }
    await this.#prune(keepFrom, { isStoreFull: false });
    return plan.base;
  }

  async #putLog(local: LocalHistory, name: string, signal: AbortSignal): Promise<void> {
    const bytes = local.log.find((file) => file.name === name)?.bytes ?? 0;
    if (bytes <= (this.#log.get(name) ?? 0)) return;
    signal.throwIfAborted();
    const openFile = () => createReadStream(logPath(local.directory, name), { end: bytes - 1 });
    const file = fromMachine(openFile, `log segment ${name}`, signal);
    const key = logKey(this.#ref, name);
    const object = await this.#at.store.put(key, await seal(this.#at.key, key, file), { bytesAtMost: bytes });
    this.#remember(object, bytes);
  }

  #basesInParts(): Set<string> {
    return new Set([...this.#objects.keys()].map(parseKey).flatMap((one) => (one?.kind === 'base' ? [one.base] : [])));
  }

  /** Takes long: log goes on being uploaded meanwhile, by `pass`. Parts that the store has are left out. */
  async uploadBase(base: BaseImage, signal: AbortSignal): Promise<void> {
    const local = this.#local;
    if (local === null) return;
    const sending = { name: base.name, bytesDone: 0 };
    this.#sending = sending;
    try {
      const whole = await this.#uploadParts(baseFolder(local.directory, base.name), base, signal);
      // Somebody may have removed a part while others went up.
      if (!this.#isWhole(whole)) return;
      this.#bases = [...this.#bases.filter(({ name }) => name !== base.name), whole].sort(byAge);
    } finally {
      this.#sending = null;
    }
    this.#wantedBase = null;
    if (this.#lostAfter !== null) {
      this.#gaps = [...this.#gaps, { from: this.#lostAfter, until: { at: base.at, lsn: base.lsn } }];
      [this.#lostAfter, this.#until] = [null, local.until];
    }
    await this.#writeDocument();
  }

  async #uploadParts(folder: string, base: BaseImage, signal: AbortSignal): Promise<StoredBase> {
    const what = `base image ${base.name}`;
    const entries = await listFolder(folder).catch((error: unknown) => {
      throw sourceError(what, error);
    });
    const parts = intoParts(entries, this.#at.partBytesMax ?? partBytesMax);
    const whole = { ...base, parts: parts.length };
    const keys = basePartKeys(this.#ref, whole);
    for (const [index, part] of parts.entries()) {
      signal.throwIfAborted();
      const key = keys[index] ?? '';
      if (!this.#objects.has(key)) {
        await this.#putPart(
          key,
          fromMachine(() => packFolder(folder, part), what, signal),
          sizeOf(part),
        );
      }
      if (this.#sending !== null) this.#sending.bytesDone += sizeOf(part);
    }
    return whole;
  }

  async #putPart(key: string, packed: Readable, bytes: number): Promise<void> {
    const sealed = await seal(this.#at.key, key, packed);
    this.#remember(await this.#at.store.put(key, sealed, { bytesAtMost: bytes * 1.1 }));
  }

  /** One after another: a base image may be finished while log is uploaded, and the newest must stay. */
  #writeDocument(): Promise<void> {
    const written = this.#writing.then(() => this.#writeNow());
    this.#writing = written.catch(() => {});
    return written;
  }

  async #writeNow(): Promise<void> {
    const local = this.#local;
    if (local === null) return;
    const { branchId, pgVersion, timeline } = local;
    const facts = { ...this.#ref, branchId, pgVersion, timeline, bases: this.#bases, until: this.#until };
    const whole = { ...facts, gaps: this.#allGaps(local) };
    // While nothing is written, only the time goes on: worth a request now and then.
    const isFresh = performance.now() - this.#writtenAtMs < idleMs;
    const text = JSON.stringify({ ...whole, until: isFresh ? this.#until?.lsn : this.#until });
    if (text === this.#written) return;
    const marks = thinned(local.marks);
    this.#remember(await writeHistoryDocument(this.#at, { ...whole, marks, writtenAt: new Date().toISOString() }));
    this.#written = JSON.stringify({ ...whole, until: whole.until?.lsn });
    this.#writtenAtMs = performance.now();
    this.#told = facts;
  }

  /** Those that the machine has noticed and those that came to be on the way here, as far as the store reaches back. */
  #allGaps(local: LocalHistory): HistoryDocument['gaps'] {
    const [first] = this.#bases;
    const all = [...local.gaps, ...this.#gaps.filter((own) => !local.gaps.some((gap) => covers(gap, own)))];
    return all
      .filter(({ until }) => first !== undefined && lsnBytes(until.lsn) > lsnBytes(first.lsn))
      .sort((a, b) => (a.from.at < b.from.at ? -1 : 1));
  }

  /**
   * A full store takes no document before something is removed. The old one then names base images that are gone, but
   * they were older than the window.
   */
  async #prune(keepFrom: Date, { isStoreFull }: { readonly isStoreFull: boolean }): Promise<void> {
    const dropped = basesToDrop(this.#bases, keepFrom);
    this.#bases = this.#bases.filter((base) => !dropped.includes(base));
    if (dropped.length > 0 && !isStoreFull) await this.#writeDocument();
    const listed = new Set([...this.#bases, this.#wantedBase, this.#sending].map((base) => base?.name));
    for (const key of [...this.#objects.keys()]) {
      const name = parseKey(key);
      // Also parts that were uploaded before a kill, of a base image that is not wanted any more.
      if (name?.kind === 'base' && !listed.has(name.base)) await this.#remove(key);
    }
    const kept = [...this.#bases, ...(this.#wantedBase ? [this.#wantedBase] : [])];
    for (const file of logToDrop(this.#log.keys(), kept)) await this.#remove(logKey(this.#ref, file));
    if (dropped.length > 0 && isStoreFull) await this.#writeDocument();
  }

  /** The document last: without it, what is left after a kill would never be found again. */
  async removeAll(): Promise<void> {
    const isDocument = (key: string) => parseKey(key)?.kind === 'document';
    const keys = [...this.#objects.keys()];
    for (const key of keys.filter((one) => !isDocument(one))) await this.#remove(key);
    for (const key of keys.filter(isDocument)) await this.#remove(key);
  }

  async #remove(key: string): Promise<void> {
    await this.#at.store.remove(key);
    this.#forget(key);
  }

  report(problem: string | null): HistoryReport {
    const { bases, until } = this.#told;
    const [first] = bases;
    const local = this.#local;
    return {
      ...this.#ref,
      branchId: local?.branchId ?? '',
      localUntil: local?.until ?? null,
      storedUntil: first === undefined ? null : until,
      storedFrom: first === undefined ? null : { at: first.at, lsn: first.lsn },
      baseCount: bases.length,
      storedBytes: [...this.#objects.values()].reduce((sum, { bytes }) => sum + bytes, 0),
      waitingBytes: this.#waitingBytes(local),
      gapCount: local === null ? this.#gaps.length : this.#allGaps(local).length,
      problem,
    };
  }

  #waitingBytes(local: LocalHistory | null): number {
    const isSending = this.#sending !== null && this.#sending.name === this.#wantedBase?.name;
    const base = Math.max(0, (this.#wantedBase?.bytes ?? 0) - (isSending ? (this.#sending?.bytesDone ?? 0) : 0));
    if (local?.until == null) return base;
    const first = [...this.#bases, ...local.bases.slice(-1)].map((one) => segmentAt(one.timeline, one.start)).sort()[0];
    const waits = local.log.map(({ name, bytes }) =>
      first !== undefined && name >= first ? Math.max(0, bytes - (this.#log.get(name) ?? 0)) : 0,
    );
    return base + waits.reduce((sum, bytes) => sum + bytes, 0);
  }
}

const sizeOf = (entries: readonly FolderEntry[]) => entries.reduce((sum, { size }) => sum + size, 0);

const covers = (gap: Gap, other: Gap) =>
  lsnBytes(gap.from.lsn) <= lsnBytes(other.from.lsn) && lsnBytes(gap.until.lsn) >= lsnBytes(other.until.lsn);

function thinned(marks: readonly LogPosition[]): readonly LogPosition[] {
  const step = Math.ceil(marks.length / marksMax);
  return step <= 1 ? marks : marks.filter((_, at) => at % step === 0 || at === marks.length - 1);
}
