/**
 * Carries the histories of this machine to the store, again and again: log first, then base images one at a time, and
 * removes what the window has left behind. It reads the machine and writes the store; what it knows it finds out anew
 * at each start. A store that is down makes it wait, and nothing else.
 */
import { delay, hourMs, minuteMs } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { type Claimant, ClaimRefusedError, claimStore, ReplacedError, requireWriter } from '../claim.ts';
import {
  type ManifestProject,
  readHistoryDocument,
  type Sealed,
  type StoredBase,
  writeManifest,
} from '../documents.ts';
import { type HistoryRef, homeKey, parseKey, systemProject } from '../layout.ts';
import { SealBrokenError, seal } from '../seal/seal.ts';
import { type StoredObject, StoreError } from '../store/object-store.ts';
import { packFiles, type SmallFile } from '../tar.ts';
import { type HistoryReport, HistoryUpload } from './history-upload.ts';
import { type LocalHistory, listLocalHistories, readLocalHistory } from './local-tree.ts';
import { SourceGoneError } from './source.ts';

/** What the system database knows. */
export interface UploadFacts {
  readonly projects: readonly (Omit<ManifestProject, 'branches'> & {
    readonly retentionSeconds: number;
    readonly branches: readonly Omit<ManifestProject['branches'][number], 'histories'>[];
  })[];
}

export interface UploadReport {
  /** Of each history that is on this machine, or that only the store has. */
  readonly histories: readonly HistoryReport[];
  /** Histories that the store has and this machine has not. */
  readonly gone: readonly HistoryRef[];
  /** Why nothing can be uploaded at the moment; null when something was, or nothing had to be. */
  readonly problem: string | null;
}

export interface UploaderParts extends Sealed {
  /** Where the driver keeps histories. */
  readonly root: string;
  readonly claimant: Claimant;
  readonly version: string;
  /** Key files and certificates of the data home. */
  readonly homeFiles: readonly SmallFile[];
  readonly delaySeconds: number;
  readonly log: Logger;
  readFacts(): Promise<UploadFacts>;
  /** Returns the histories that were gone for long enough to be removed from the store. */
  report(report: UploadReport): Promise<readonly HistoryRef[]>;
}

/** Histories at once; most of the time is the store's and the compressor's. */
const lanes = 3;
const claimCheckMs = minuteMs;
const listingMs = hourMs;
const retryMsMax = minuteMs;
/** Before projects are known, and for the system database at least. */
const retentionSecondsMin = 86_400;

const nameOf = ({ projectId, historyId }: HistoryRef) => `${projectId}/${historyId}`;

export class Uploader {
  readonly #parts: UploaderParts;
  readonly #stopping = new AbortController();
  readonly #uploads = new Map<string, HistoryUpload>();
  readonly #problems = new Map<string, string>();
  #running: Promise<void> | undefined;
  #writer: string | null = null;
  #claimCheckedAt = 0;
  #listedAt = 0;
  #manifest = '';
  #baseUnderWay: Promise<void> | null = null;

  constructor(parts: UploaderParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the uploader stops'));
    await this.#running;
    await this.#baseUnderWay;
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
        await this.#tell(error instanceof Error ? error.message : String(error));
        if (error instanceof ReplacedError) return;
      }
      await delay(failures === 0 ? everyMs : Math.min(retryMsMax, 1_000 * 2 ** failures), this.#stopping.signal);
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
      for (let ref = waiting.pop(); ref !== undefined && failure === undefined; ref = waiting.pop()) {
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
    const options = { retentionSeconds: retentionOf(facts, ref), now: new Date(), signal: this.#stopping.signal };
    const base = await upload.pass(local, options);
    this.#problems.delete(nameOf(ref));
    if (base !== null && this.#baseUnderWay === null) this.#baseUnderWay = this.#uploadBase(ref, upload, base);
  }

  /** One at a time: it takes what the log leaves of the bandwidth. */
  async #uploadBase(ref: HistoryRef, upload: HistoryUpload, base: StoredBase): Promise<void> {
    try {
      await upload.uploadBase(base, this.#stopping.signal);
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#note(ref, error);
    } finally {
      this.#baseUnderWay = null;
    }
  }

  #note(ref: HistoryRef, error: unknown): void {
    // Pruned while it was read: the next round sees what is there then.
    if (error instanceof SourceGoneError) return;
    this.#parts.log.error({ err: error, ...ref }, 'a history could not be uploaded');
    this.#problems.set(nameOf(ref), error instanceof Error ? error.message : String(error));
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
      })),
    };
    const text = JSON.stringify(facts);
    if (text === this.#manifest) return;
    await writeManifest(this.#parts, { ...facts, writtenAt: new Date().toISOString() });
    this.#manifest = text;
  }

  async #tell(problem: string | null): Promise<void> {
    const here = new Set((await listLocalHistories(this.#parts.root).catch(() => [])).map(nameOf));
    const refs = [...this.#uploads.keys()].map(refOf);
    const histories = refs.flatMap((ref) => {
      const report = this.#uploads.get(nameOf(ref))?.report(this.#problems.get(nameOf(ref)) ?? null);
      return report && here.has(nameOf(ref)) ? [report] : [];
    });
    const gone = problem === null ? refs.filter((ref) => !here.has(nameOf(ref))) : [];
    const removable = await this.#parts.report({ histories, gone, problem }).catch((error: unknown) => {
      this.#parts.log.error({ err: error }, 'the state of backups could not be recorded');
      return [];
    });
    for (const ref of removable) {
      await this.#uploads.get(nameOf(ref))?.removeAll();
      this.#uploads.delete(nameOf(ref));
    }
  }
}

function refOf(name: string): HistoryRef {
  const [projectId = '', historyId = ''] = name.split('/');
  return { projectId, historyId };
}

/** The system database must reach as far back as any project does. */
function retentionOf({ projects }: UploadFacts, { projectId }: HistoryRef): number {
  const all = projects.map(({ retentionSeconds }) => retentionSeconds);
  if (projectId === systemProject) return Math.max(retentionSecondsMin, ...all);
  return projects.find(({ id }) => id === projectId)?.retentionSeconds ?? retentionSecondsMin;
}
