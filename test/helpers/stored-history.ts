/** Puts a history as it is on the disk into a store, as the uploader does, for tests of the way back. */
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { claimStore } from '../../src/backup/claim.ts';
import { writeHistoryDocument, writeManifest } from '../../src/backup/documents.ts';
import { basePartKey, type HistoryRef, homeKey, logKey } from '../../src/backup/layout.ts';
import { newBackupKeyLine, parseBackupKey } from '../../src/backup/seal/backup-key.ts';
import { seal } from '../../src/backup/seal/seal.ts';
import { FileStore } from '../../src/backup/store/file-store.ts';
import { packFiles, packFolder, type SmallFile } from '../../src/backup/tar.ts';
import { type HistoryPaths, readBases, readMarks, readState } from '../../src/compute/local/host/history/files.ts';

export interface TestStore {
  readonly keyLine: string;
  readonly settings: { readonly url: string; readonly s3: undefined; readonly bytesPerSecond: undefined };
  putHistory(ref: HistoryRef, paths: HistoryPaths): Promise<void>;
  putHome(files: readonly SmallFile[]): Promise<void>;
}

/** `folder` exists and is empty. */
export async function makeTestStore(folder: string): Promise<TestStore> {
  const keyLine = newBackupKeyLine();
  const key = parseBackupKey(keyLine);
  const store = new FileStore(folder);
  const sealed = { store, key };
  await claimStore(store, { installationId: 'of-a-test', keyId: key.id });
  await writeManifest(sealed, {
    installationId: 'of-a-test',
    catnapVersion: '0',
    writtenAt: new Date().toISOString(),
    systemHistories: [],
    projects: [],
  });
  return {
    keyLine,
    settings: { url: store.url, s3: undefined, bytesPerSecond: undefined },
    async putHistory(ref, paths) {
      const state = await readState(paths);
      if (state === null) throw new Error(`${paths.directory} has no history`);
      const bases = await readBases(paths);
      for (const { name } of bases) {
        const object = basePartKey(ref, name, 1, 1);
        await store.put(object, await seal(key, object, packFolder(join(paths.bases, name, 'pgdata'))));
      }
      for (const file of await readdir(paths.log)) {
        const name = logKey(ref, file);
        await store.put(name, await seal(key, name, createReadStream(join(paths.log, file))));
      }
      const { branchId, pgVersion, timeline, copied: until, gaps } = state;
      await writeHistoryDocument(sealed, {
        ...ref,
        branchId,
        pgVersion,
        timeline,
        until,
        gaps,
        bases: bases.map((base) => ({ ...base, firstSecret: null, parts: 1 })),
        marks: await readMarks(paths),
        writtenAt: new Date().toISOString(),
      });
    },
    async putHome(files) {
      await store.put(homeKey, await seal(key, homeKey, packFiles(files)));
    },
  };
}
