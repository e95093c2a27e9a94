/** The sealed documents of a store: what each history holds, and what histories there are. */
import { buffer } from 'node:stream/consumers';
import type { LogPosition } from '../lib/moments.ts';
import { documentKey, type HistoryRef, manifestKey } from './layout.ts';
import type { BackupKey } from './seal/backup-key.ts';
import { openDocument, sealDocument } from './seal/seal.ts';
import { NoSuchObjectError, type ObjectStore, type StoredObject } from './store/object-store.ts';

/** Raised when an older Catnap could not read what a newer one has written. */
const format = 1;

/** A base image, as `base.json` describes it on the machine. */
export interface BaseImage {
  readonly name: string;
  readonly timeline: number;
  /** Where its recovery begins to read the log. */
  readonly start: string;
  /** From here on it gives every moment. */
  readonly lsn: string;
  readonly at: string;
  /** Of its files. */
  readonly bytes: number;
  /** The copy of a server that ran, with a backup label. */
  readonly isLive: boolean;
  /** The password of Catnap's login where the data still has that of its template; null where it has its own. */
  readonly firstSecret: string | null;
}

/** A base image that the store has. */
export interface StoredBase extends BaseImage {
  /** How many objects it is, each an archive of some of its files. */
  readonly parts: number;
}

export interface HistoryDocument extends HistoryRef {
  readonly branchId: string;
  readonly pgVersion: number;
  readonly timeline: number;
  /** Oldest first. */
  readonly bases: readonly StoredBase[];
  /** The store has all log up to here, apart from the gaps; null while it has none. */
  readonly until: LogPosition | null;
  /** Spans that were lost before they could be copied. */
  readonly gaps: readonly { readonly from: LogPosition; readonly until: LogPosition }[];
  /** When the log had reached which position, oldest first: a time is looked up here before the log is read. */
  readonly marks: readonly LogPosition[];
  readonly writtenAt: string;
}

export interface ManifestBranch {
  readonly id: string;
  readonly name: string;
  readonly parentId: string | null;
  /** Its present data first, then data that it had before; empty while nothing of it is in the store. */
  readonly histories: readonly string[];
}

export interface ManifestSnapshot {
  readonly id: string;
  readonly name: string;
  readonly sourceBranchId: string;
  /** The moment that it holds. */
  readonly takenAt: string | null;
  /** One base image without log; empty while it is not in the store. */
  readonly histories: readonly string[];
}

export interface ManifestProject {
  readonly id: string;
  readonly name: string;
  readonly pgVersion: number;
  readonly branches: readonly ManifestBranch[];
  readonly snapshots: readonly ManifestSnapshot[];
}

export interface Manifest {
  readonly installationId: string;
  readonly catnapVersion: string;
  readonly writtenAt: string;
  /** Histories of the system database, the newest first; empty where it is not Catnap's own server. */
  readonly systemHistories: readonly string[];
  readonly projects: readonly ManifestProject[];
}

export interface Sealed {
  readonly store: ObjectStore;
  readonly key: BackupKey;
}

export const readHistoryDocument = (at: Sealed, ref: HistoryRef) => read<HistoryDocument>(at, documentKey(ref));
export const writeHistoryDocument = (at: Sealed, document: HistoryDocument) =>
  write(at, documentKey(document), document);

export const readManifest = (at: Sealed) => read<Manifest>(at, manifestKey);
export const writeManifest = (at: Sealed, manifest: Manifest) => write(at, manifestKey, manifest);

/** Null if there is none; fails with SealBrokenError if it is not what was written. */
async function read<T>({ store, key }: Sealed, name: string): Promise<T | null> {
  try {
    const document = await openDocument(key, name, await buffer(await store.get(name)));
    const found = (document as { readonly format?: unknown }).format;
    if (found !== format) throw new Error(`${name} has format ${found}; this version of Catnap reads ${format}`);
    // The proof was checked, so the shape is that which this program, or its older self, has written.
    return document as T;
  } catch (error) {
    if (error instanceof NoSuchObjectError) return null;
    throw error;
  }
}

async function write({ store, key }: Sealed, name: string, document: object): Promise<StoredObject> {
  return store.put(name, await sealDocument(key, name, { format, ...document }));
}
