/** A backup as a restore sees it: the store, the key that opens it, and the histories that it holds. */
import type { Claim } from '../../backup/claim.ts';
import { readClaim } from '../../backup/claim.ts';
import { type HistoryDocument, type Manifest, readHistoryDocument, readManifest } from '../../backup/documents.ts';
import { type HistoryRef, nameOf, parseKey, systemProject } from '../../backup/layout.ts';
import { type BackupKey, parseBackupKey } from '../../backup/seal/backup-key.ts';
import { SealBrokenError } from '../../backup/seal/seal.ts';
import type { ObjectStore } from '../../backup/store/object-store.ts';
import { openStore } from '../../backup/store/open-store.ts';
import type { BackupSettings } from '../../lib/backup-settings.ts';

export interface Backup {
  readonly store: ObjectStore;
  readonly key: BackupKey;
  readonly claim: Claim;
  /** Null before the first one was written, or when it was changed by somebody. */
  readonly manifest: Manifest | null;
}

export interface StoredHistory extends HistoryRef {
  readonly document: HistoryDocument;
}

export interface Inventory {
  /** Of the system database, the newest first; empty where it was not Catnap's own server. */
  readonly system: readonly StoredHistory[];
  readonly tenants: readonly StoredHistory[];
  /** Histories that cannot be used, and why. */
  readonly unusable: readonly (HistoryRef & { readonly reason: string })[];
}

/** Reads nothing but what says whose backup it is, so a wrong key is found before anything is fetched. */
export async function openBackup(settings: BackupSettings, keyLine: string): Promise<Backup> {
  const key = parseBackupKey(keyLine);
  const store = openStore(settings);
  try {
    const claim = await readClaim(store);
    if (claim === null) throw new Error(`there is no backup at ${store.url}: it has no catnap.json`);
    if (claim.keyId !== key.id) {
      throw new Error(`wrong backup key: it has the id ${key.id}, and ${store.url} was written with ${claim.keyId}`);
    }
    return { store, key, claim, manifest: await readable(() => readManifest({ store, key })) };
  } catch (error) {
    store.close();
    throw error;
  }
}

/** Names of projects and branches are for people; what is missing of them stops nothing. */
async function readable<T>(read: () => Promise<T | null>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof SealBrokenError) return null;
    throw error;
  }
}

interface Listed {
  readonly ref: HistoryRef;
  hasDocument: boolean;
}

/** `projectId` leaves out the histories of other projects, but not those of the system database. */
export async function takeInventory(backup: Backup, projectId?: string): Promise<Inventory> {
  const prefixes = ['system/', projectId === undefined ? 'projects/' : `projects/${projectId}/`];
  const listed = new Map<string, Listed>();
  for (const prefix of prefixes) {
    for await (const { key } of backup.store.list(prefix)) note(listed, key);
  }
  const found: StoredHistory[] = [];
  const unusable: Inventory['unusable'][number][] = [];
  for (const { ref, hasDocument } of listed.values()) {
    try {
      const document = hasDocument ? await readHistoryDocument(backup, ref) : null;
      // One whose first base image is not there yet must not stand before an older one that has some.
      if (document === null || document.bases.length === 0) {
        unusable.push({ ...ref, reason: 'its first upload was not finished' });
      } else found.push({ ...ref, document });
    } catch (error) {
      if (!(error instanceof SealBrokenError)) throw error;
      unusable.push({ ...ref, reason: error.message });
    }
  }
  found.sort((a, b) => (endOf(a) < endOf(b) ? 1 : -1));
  return {
    system: found.filter((one) => one.projectId === systemProject),
    tenants: found.filter((one) => one.projectId !== systemProject),
    unusable,
  };
}

function note(listed: Map<string, Listed>, key: string): void {
  const name = parseKey(key);
  if (name === null) return;
  const id = nameOf(name.ref);
  const history = listed.get(id) ?? { ref: name.ref, hasDocument: false };
  listed.set(id, history);
  if (name.kind === 'document') history.hasDocument = true;
}

const endOf = ({ document }: StoredHistory) => document.until?.at ?? '';
