/**
 * Carries the histories of this machine to the store, again and again: log first, then base images, two at a time,
 * and removes what the window has left behind. It reads the machine and writes the store; what it knows it finds out
 * anew at each start. A store that is down makes it wait, and nothing else.
 */
import { delay, hourMs, minuteMs } from '../../lib/clock.ts';
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { createSteadyTime, type SteadyTime } from '../../lib/steady-time.ts';
import { type Claimant, ClaimRefusedError, claimStore, ReplacedError, requireWriter } from '../claim.ts';
import { type BaseImage, type ManifestProject, readHistoryDocument, writeManifest } from '../documents.ts';
import { type HistoryRef, homeKey, nameOf, parseKey, refOf, systemProject } from '../layout.ts';
import { SealBrokenError, seal } from '../seal/seal.ts';
import { isFull, type StoredObject, StoreError } from '../store/object-store.ts';
import { packFiles, type SmallFile } from '../tar.ts';
import { type HistoryReport, HistoryUpload, type LocalReport, type UploadTarget } from './history-upload.ts';
import { type LocalHistory, listLocalHistories, readLocalHistories, readLocalHistory } from './local-tree.ts';
import { SourceGoneError } from './source.ts';

/** What the system database knows. */
export interface UploadFacts {
  readonly projects: readonly (Omit<ManifestProject, 'branches' | 'snapshots'> & {
    readonly retentionSeconds: number;
    readonly branches: readonly Omit<ManifestProject['branches'][number], 'histories'>[];
    readonly snapshots: readonly Omit<ManifestProject['snapshots'][number], 'histories'>[];
  })[];
}

export interface UploadReport {
  /** Of each history that is on this machine, or that only the store has. */
  readonly histories: readonly HistoryReport[];
  /** On this machine, while nobody can say what the store has of them. */
  readonly unmatched: readonly LocalReport[];
  /** Histories that the store has and this machine has not. */
  readonly gone: readonly HistoryRef[];
  /** Why nothing can be uploaded at the moment; null when something was, or nothing had to be. */
  readonly problem: string | null;
  /** By which `gone` is long enough. */
  readonly now: Date;
}

export interface UploaderParts extends UploadTarget {
  /** Where the driver keeps histories. */
  readonly root: string;
  readonly claimant: Claimant;
  readonly version: string;
  /** Key files and certificates of the data home. */
  readonly homeFiles: readonly SmallFile[];
  readonly delaySeconds: number;
  /** By which things are given up; for tests. */
  readonly time?: SteadyTime;
  readonly log: Logger;
  readFacts(): Promise<UploadFacts>;
  /** Returns the histories that were gone for long enough to be removed from the store. */
  report(report: UploadReport): Promise<readonly HistoryRef[]>;
}

/** Histories at once; most of the time is the store's and the compressor's. */
const lanes = 3;
/** Base images at once, beside the log: while one waits for the store, the other is compressed. */
const basesAtOnce = 2;
const claimCheckMs = minuteMs;
const listingMs = hourMs;
const retryMsMax = minuteMs;
/** Before projects are known, and for the system database at least. */
const retentionSecondsMin = 86_400;

/** Grows with each failure in a row. */
const pauseMs = (failures: number) => Math.min(retryMsMax, 1_000 * 2 ** failures);

export class Uploader {
  readonly #parts: UploaderParts;
  readonly #stopping = new AbortController();
  readonly #uploads = new Map<string, HistoryUpload>();
  readonly #problems = new Map<string, string>();
  /** Base images that could not be uploaded, by history: why, and when they are tried again. */
  readonly #baseTroubles = new Map<string, { problem: string; failures: number; notBeforeMs: number }>();
  readonly #time: SteadyTime;
  #running: Promise<void> | undefined;
  #writer: string | null = null;
  #claimCheckedAt = 0;
  #listedAt = 0;
  #manifest = '';
  /** Base images that are being uploaded, by history. */
  readonly #basesUnderWay = new Map<string, Promise<void>>();
  /** Those that the last round has found besides, in the order in which they go up. */
  readonly #basesWaiting = new Map<string, () => Promise<void>>();

  constructor(parts: UploaderParts) {
    this.#parts = parts;
    this.#time = parts.time ?? createSteadyTime();
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the uploader stops'));
    await this.#running;
    await Promise.all(this.#basesUnderWay.values());
    this.#parts.store.close();
  }

  async #run(): Promise<void> {
    const { log, delaySeconds } = this.#parts;
    const everyMs = Math.max(500, (delaySeconds * 1_000) / 3);
    for (let failures = 0; !this.#stopping.signal.aborted; ) {
      try {
        await this.round();
        if (failures > 0) log.info({ failures }, 'backups go on');
        failures = 0;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        failures += 1;
        log.error({ err: error, failures }, 'a backup failed');
        await this.#tell(errorText(error), isFull(error));
        if (error instanceof ReplacedError) return;
      }
      await delay(failures === 0 ? everyMs : pauseMs(failures), this.#stopping.signal);
    }
  }

  /** One look at everything. Fails with the store's failure if the store fails. */
  async round(): Promise<void> {
    if (this.#writer === null) await this.#begin();
    else await this.#check();
    const refs = await listLocalHistories(this.#parts.root);
    const facts = await this.#parts.readFacts();
    const found = await this.#passAll(refs, facts);
    await this.#putManifest(facts, found);
    await this.#tell(null);
  }

  async #begin(): Promise<void> {
    const { store, claimant, key, homeFiles } = this.#parts;
    const writer = await claimStore(store, claimant);
    this.#uploads.clear();
    for (const [, { ref, objects }] of await this.#list()) await this.#add(ref, objects);
    await store.put(homeKey, await seal(key, homeKey, packFiles(homeFiles)));
    await store.sweep();
    [this.#writer, this.#claimCheckedAt, this.#listedAt] = [writer, performance.now(), performance.now()];
  }

  async #add(ref: HistoryRef, objects: readonly StoredObject[]): Promise<HistoryUpload> {
    const document = await readHistoryDocument(this.#parts, ref).catch((error: unknown) => {
      // Somebody has changed it. What it named cannot be trusted to be whole, so a new base image goes up.
      if (error instanceof SealBrokenError) return null;
      throw error;
    });
    const upload = new HistoryUpload(this.#parts, ref, objects, document);
    this.#uploads.set(nameOf(ref), upload);
    return upload;
  }

  /** Whether the prefix is still ours, and every hour whether everything in it is still as it was written. */
  async #check(): Promise<void> {
    const { store, claimant, log } = this.#parts;
    if (performance.now() - this.#claimCheckedAt > claimCheckMs) {
      await requireWriter(store, { ...claimant, writer: this.#writer ?? '' }).catch((error: unknown) => {
        if (error instanceof ClaimRefusedError && !(error instanceof ReplacedError)) this.#writer = null;
        throw error;
      });
      this.#claimCheckedAt = performance.now();
    }
    if (performance.now() - this.#listedAt < listingMs) return;
    await this.compare();
    this.#listedAt = performance.now();
    log.debug({ histories: this.#uploads.size }, 'the store was compared with what was written');
  }

  /** Finds objects that are missing or were changed by somebody else; the next round uploads them again. */
  async compare(): Promise<void> {
    const known = new Map([...this.#uploads].map(([name, upload]) => [name, upload.objects()]));
    const listed = await this.#list();
    for (const [name, upload] of this.#uploads) {
      const wrong = upload.compare(listed.get(name)?.objects ?? [], known.get(name) ?? []);
      if (wrong.length > 0) this.#parts.log.error({ wrong }, 'objects of the store are missing or were changed');
    }
  }

  async #list(): Promise<Map<string, { ref: HistoryRef; objects: StoredObject[] }>> {
    const found = new Map<string, { ref: HistoryRef; objects: StoredObject[] }>();
    for (const prefix of ['projects/', 'system/']) {
      for await (const object of this.#parts.store.list(prefix)) {
        const ref = parseKey(object.key)?.ref;
        if (ref === undefined) continue;
        const one = found.get(nameOf(ref)) ?? { ref, objects: [] };
        one.objects.push(object);
        found.set(nameOf(ref), one);
      }
    }
    return found;
  }

  async #passAll(refs: readonly HistoryRef[], facts: UploadFacts): Promise<LocalHistory[]> {
    const found: LocalHistory[] = [];
    const waiting = [...refs];
    let failure: unknown;
    const lane = async () => {
      // A store that is full is still asked for the others: each gives up what is too old, and so makes room.
      const isOver = () => failure !== undefined && !isFull(failure);
      for (let ref = waiting.pop(); ref !== undefined && !isOver(); ref = waiting.pop()) {
        await this.#passOne(ref, facts, found).catch((error: unknown) => {
          if (error instanceof StoreError || this.#stopping.signal.aborted) failure ??= error;
          else this.#note(ref, error);
        });
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    if (failure !== undefined) throw failure;
    return found;
  }

  async #passOne(ref: HistoryRef, facts: UploadFacts, found: LocalHistory[]): Promise<void> {
    const upload = this.#uploads.get(nameOf(ref)) ?? (await this.#add(ref, []));
    const local = await readLocalHistory(this.#parts.root, ref);
    if (local === null) return;
    found.push(local);
    const options = { retentionSeconds: retentionOf(facts, ref), now: this.#time.now(), signal: this.#stopping.signal };
    const base = await upload.pass(local, options);
    this.#problems.delete(nameOf(ref));
    if (base === null) this.#baseTroubles.delete(nameOf(ref));
    const { notBeforeMs = 0 } = this.#baseTroubles.get(nameOf(ref)) ?? {};
    if (base === null || this.#basesUnderWay.has(nameOf(ref)) || performance.now() < notBeforeMs) {
      this.#basesWaiting.delete(nameOf(ref));
      return;
    }
    this.#basesWaiting.set(nameOf(ref), () => this.#uploadBase(ref, upload, base));
    this.#startBases();
  }

  #startBases(): void {
    for (const [name, begin] of this.#basesWaiting) {
      if (this.#basesUnderWay.size >= basesAtOnce || this.#stopping.signal.aborted) return;
      this.#basesWaiting.delete(name);
      this.#basesUnderWay.set(name, begin());
    }
  }

  /**
   * A few at a time: they take what the log leaves of the bandwidth. After a failure others have their turn, and the
   * next attempt goes on with the parts that are missing.
   */
  async #uploadBase(ref: HistoryRef, upload: HistoryUpload, base: BaseImage): Promise<void> {
    const name = nameOf(ref);
    const before = upload.objects().length;
    try {
      await upload.uploadBase(base, this.#stopping.signal);
      this.#baseTroubles.delete(name);
      // The next one follows at once; after a failure it waits for the next round, as the store may be down.
      this.#basesUnderWay.delete(name);
      this.#startBases();
    } catch (error) {
      if (this.#stopping.signal.aborted || (error instanceof SourceGoneError && !(await this.#hasBase(ref, base))))
        return;
      this.#parts.log.error({ err: error, ...ref, base: base.name }, 'a base image could not be uploaded');
      const hasProgressed = upload.objects().length > before;
      const failures = hasProgressed ? 1 : (this.#baseTroubles.get(name)?.failures ?? 0) + 1;
      const notBeforeMs = performance.now() + pauseMs(failures);
      this.#baseTroubles.set(name, { problem: errorText(error), failures, notBeforeMs });
    } finally {
      this.#basesUnderWay.delete(name);
    }
  }

  /** A base image that misses a file and is still kept was not pruned: it is damaged. */
  async #hasBase(ref: HistoryRef, { name }: BaseImage): Promise<boolean> {
    const local = await readLocalHistory(this.#parts.root, ref).catch(() => null);
    return local?.bases.some((base) => base.name === name) ?? false;
  }

  #note(ref: HistoryRef, error: unknown): void {
    // Pruned while it was read: the next round sees what is there then.
    if (error instanceof SourceGoneError) return;
    this.#parts.log.error({ err: error, ...ref }, 'a history could not be uploaded');
    this.#problems.set(nameOf(ref), errorText(error));
  }

  async #putManifest({ projects }: UploadFacts, locals: readonly LocalHistory[]): Promise<void> {
    const { claimant, version } = this.#parts;
    const historiesOf = (projectId: string, branchId?: string) =>
      locals
        .filter(({ ref, branchId: found }) => ref.projectId === projectId && (branchId ?? found) === found)
        .sort((a, b) => ((a.until?.at ?? '') > (b.until?.at ?? '') ? -1 : 1))
        .map(({ ref }) => ref.historyId);
    const facts = {
      installationId: claimant.installationId,
      catnapVersion: version,
      systemHistories: historiesOf(systemProject),
      projects: projects.map(({ retentionSeconds: _, ...project }) => ({
        ...project,
        branches: project.branches.map((branch) => ({ ...branch, histories: historiesOf(project.id, branch.id) })),
        snapshots: project.snapshots.map((one) => ({ ...one, histories: historiesOf(project.id, one.id) })),
      })),
    };
    const text = JSON.stringify(facts);
    if (text === this.#manifest) return;
    await writeManifest(this.#parts, { ...facts, writtenAt: new Date().toISOString() });
    this.#manifest = text;
  }

  /**
   * A round that fails may not have come to a history, and a machine that goes on writing falls behind meanwhile.
   * Returns those of which the store's part is not known.
   */
  async #seeMachine(): Promise<LocalReport[]> {
    const locals = await readLocalHistories(this.#parts.root);
    for (const local of locals) this.#uploads.get(nameOf(local.ref))?.see(local);
    return locals
      .filter(({ ref }) => !this.#uploads.has(nameOf(ref)))
      .map(({ ref, branchId, until }) => ({ ...ref, branchId, localUntil: until }));
  }

  /** `isStoreFull`: what may be removed makes room. With any other problem, nothing is. */
  async #tell(problem: string | null, isStoreFull = false): Promise<void> {
    const unmatched = problem === null ? [] : await this.#seeMachine();
    const here = new Set((await listLocalHistories(this.#parts.root).catch(() => [])).map(nameOf));
    const refs = [...this.#uploads.keys()].map(refOf);
    const histories = refs.flatMap((ref) => {
      const trouble = this.#problems.get(nameOf(ref)) ?? this.#baseTroubles.get(nameOf(ref))?.problem ?? null;
      const report = this.#uploads.get(nameOf(ref))?.report(trouble);
      return report && here.has(nameOf(ref)) ? [report] : [];
    });
    const gone = problem === null || isStoreFull ? refs.filter((ref) => !here.has(nameOf(ref))) : [];
    const removable = await this.#parts
      .report({ histories, unmatched, gone, problem, now: this.#time.now() })
      .catch((error: unknown) => {
        this.#parts.log.error({ err: error }, 'the state of backups could not be recorded');
        return [];
      });
    for (const ref of removable) {
      await this.#uploads.get(nameOf(ref))?.removeAll();
      this.#uploads.delete(nameOf(ref));
    }
  }
}

/** The system database must reach as far back as any project does. */
function retentionOf({ projects }: UploadFacts, { projectId }: HistoryRef): number {
  const all = projects.map(({ retentionSeconds }) => retentionSeconds);
  if (projectId === systemProject) return Math.max(retentionSecondsMin, ...all);
  return projects.find(({ id }) => id === projectId)?.retentionSeconds ?? retentionSecondsMin;
}
