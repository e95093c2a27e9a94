/** An uploader with a history on the disk and a store in a folder. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect } from 'vitest';
import { readHistoryDocument } from '../../src/backup/documents.ts';
import { type HistoryRef, logKey, parseKey } from '../../src/backup/layout.ts';
import { newBackupKeyLine, parseBackupKey } from '../../src/backup/seal/backup-key.ts';
import { open } from '../../src/backup/seal/seal.ts';
import { FileStore } from '../../src/backup/store/file-store.ts';
import type { ObjectStore } from '../../src/backup/store/object-store.ts';
import { Uploader, type UploaderParts, type UploadReport } from '../../src/backup/upload/uploader.ts';
import { createLogger } from '../../src/lib/log.ts';
import { eventually } from './eventually.ts';
import { type HistoryTree, makeHistoryTree, treeRef } from './history-tree.ts';
import { namesIn } from './store-contract.ts';

export const uploadKey = parseBackupKey(newBackupKeyLine());

export class UploadStage {
  readonly tree: HistoryTree;
  readonly folder: string;
  readonly store: ObjectStore;
  readonly reports: UploadReport[] = [];
  readonly #running: Uploader[] = [];
  retentionSeconds = 86_400;
  /** What the uploader is told to remove. */
  removable: readonly HistoryRef[] = [];

  private constructor(tree: HistoryTree, folder: string) {
    this.tree = tree;
    this.folder = folder;
    this.store = new FileStore(folder);
  }

  static async make(): Promise<UploadStage> {
    return new UploadStage(await makeHistoryTree(), await mkdtemp(join(tmpdir(), 'cn-upload-')));
  }

  async close(): Promise<void> {
    for (const one of this.#running) await one.stop();
    await Promise.all([this.tree.remove(), rm(this.folder, { recursive: true, force: true })]);
  }

  newUploader(changes: Partial<UploaderParts> = {}): Uploader {
    const uploader = new Uploader({
      store: this.store,
      key: uploadKey,
      root: this.tree.root,
      claimant: { installationId: 'this', keyId: uploadKey.id },
      version: '0.0.0',
      homeFiles: [{ name: 'secret.key', content: Buffer.from('s3cret') }],
      delaySeconds: 1,
      log: createLogger({ level: 'silent', process: 'backup' }),
      readFacts: async () => ({
        projects: [
          {
            id: treeRef.projectId,
            name: 'cats',
            pgVersion: 17,
            retentionSeconds: this.retentionSeconds,
            branches: [{ id: 'br-quiet-cat-1', name: 'main', parentId: null }],
            snapshots: [{ id: 'snap-1', name: 'before', sourceBranchId: 'br-quiet-cat-1', takenAt: null }],
          },
        ],
      }),
      report: async (report) => {
        this.reports.push(report);
        return this.removable;
      },
      ...changes,
    });
    this.#running.push(uploader);
    return uploader;
  }

  readonly document = () => readHistoryDocument({ store: this.store, key: uploadKey }, treeRef);
  readonly opened = async (name: string) => buffer(open(uploadKey, name, await this.store.get(name)));
  readonly last = () => this.reports.at(-1)?.histories[0];

  readonly stored = async (kind: 'log' | 'base') =>
    (await namesIn(this.store, 'projects/')).filter((name) => parseKey(name)?.kind === kind);

  readonly storedLog = async () =>
    (await this.stored('log')).map(parseKey).flatMap((name) => (name?.kind === 'log' ? [name.file] : []));

  /** Until nothing waits any more. */
  readonly settle = (uploader: Uploader) =>
    eventually(async () => {
      await uploader.round();
      expect(this.last()).toMatchObject({ waitingBytes: 0, storedUntil: this.last()?.localUntil });
      expect(this.last()?.baseCount).toBeGreaterThan(0);
    });

  readonly expectWhole = async () => {
    expect((await this.document())?.until?.lsn).toBe(this.tree.end());
    const folder = join(this.tree.root, treeRef.projectId, treeRef.historyId, 'log');
    for (const name of await this.storedLog()) {
      const whole = await readFile(join(folder, name)).catch(() => null);
      if (whole !== null) expect((await this.opened(logKey(treeRef, name))).equals(whole), name).toBe(true);
    }
  };
}

/** The same store, but `fail` is asked before each write, with its name, and may throw. */
export function troubled(store: ObjectStore, fail: (action: 'put' | 'remove', key: string) => void): ObjectStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (name !== 'put' && name !== 'remove') return typeof value === 'function' ? value.bind(target) : value;
      return async (...args: Parameters<ObjectStore['put']>) => {
        fail(name, args[0]);
        return value.apply(target, args);
      };
    },
  });
}
