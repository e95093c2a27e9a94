import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { type HistoryTree, makeHistoryTree, treeRef } from '../../../test/helpers/history-tree.ts';
import { namesIn } from '../../../test/helpers/store-contract.ts';
import { createLogger } from '../../lib/log.ts';
import { readClaim } from '../claim.ts';
import { readHistoryDocument, readManifest } from '../documents.ts';
import { baseKey, homeKey, logKey, parseKey } from '../layout.ts';
import { segmentBytes } from '../log-segments.ts';
import { newBackupKeyLine, parseBackupKey } from '../seal/backup-key.ts';
import { open } from '../seal/seal.ts';
import { FileStore } from '../store/file-store.ts';
import type { ObjectStore } from '../store/object-store.ts';
import { unpackFolder } from '../tar.ts';
import { Uploader, type UploaderParts, type UploadReport } from './uploader.ts';

const key = parseBackupKey(newBackupKeyLine());
const segment = Number(segmentBytes);
const dayMs = 86_400_000;
let tree: HistoryTree;
let folder: string;
let store: ObjectStore;
let reports: UploadReport[];
let retentionSeconds: number;
let removable: readonly (typeof treeRef)[];
let running: Uploader[];

beforeEach(async () => {
  tree = await makeHistoryTree();
  folder = await mkdtemp(join(tmpdir(), 'cn-upload-'));
  store = new FileStore(folder);
  [reports, retentionSeconds, removable, running] = [[], 86_400, [], []];
});

afterEach(async () => {
  for (const one of running) await one.stop();
  await Promise.all([tree.remove(), rm(folder, { recursive: true, force: true })]);
});

function newUploader(changes: Partial<UploaderParts> = {}): Uploader {
  const uploader = new Uploader({
    store,
    key,
    root: tree.root,
    claimant: { installationId: 'this', keyId: key.id },
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
          retentionSeconds,
          branches: [{ id: 'br-quiet-cat-1', name: 'main', parentId: null }],
        },
      ],
    }),
    report: async (report) => {
      reports.push(report);
      return removable;
    },
    ...changes,
  });
  running.push(uploader);
  return uploader;
}

const document = () => readHistoryDocument({ store, key }, treeRef);
const stored = async (kind: 'log' | 'base') =>
  (await namesIn(store, 'projects/')).map(parseKey).flatMap((name) => (name?.kind === kind ? [name] : []));
const storedLog = async () => (await stored('log')).flatMap((name) => (name.kind === 'log' ? [name.file] : []));
const opened = async (name: string) => buffer(open(key, name, await store.get(name)));
const localLog = (name: string) => readFile(join(tree.root, treeRef.projectId, treeRef.historyId, 'log', name));
const last = () => reports.at(-1)?.histories[0];

/** Until nothing waits any more. */
async function settle(uploader: Uploader): Promise<void> {
  await eventually(async () => {
    await uploader.round();
    expect(last()).toMatchObject({ waitingBytes: 0, storedUntil: last()?.localUntil });
    expect(last()?.baseCount).toBeGreaterThan(0);
  });
}

async function expectWhole(): Promise<void> {
  const found = await document();
  expect(found?.until?.lsn).toBe(tree.end());
  for (const name of await storedLog()) {
    const whole = await localLog(name).catch(() => null);
    if (whole !== null) expect((await opened(logKey(treeRef, name))).equals(whole), name).toBe(true);
  }
}

const one = '000000010000000000000001';
const two = '000000010000000000000002';

describe('an uploader', () => {
  test('carries log, base image, document, manifest and key files to the store', async () => {
    const base = await tree.makeBase();
    await tree.write(segment + 1_000);
    const uploader = newUploader();
    await settle(uploader);
    expect(await storedLog()).toEqual([one, two]);
    await expectWhole();
    expect(await document()).toMatchObject({ ...treeRef, branchId: 'br-quiet-cat-1', bases: [base], gaps: [] });
    const to = await mkdtemp(join(tmpdir(), 'cn-base-'));
    await unpackFolder(open(key, baseKey(treeRef, base.name), await store.get(baseKey(treeRef, base.name))), to);
    expect(await readFile(join(to, 'PG_VERSION'), 'utf8')).toBe('17\n');
    await unpackFolder(open(key, homeKey, await store.get(homeKey)), to);
    expect(await readFile(join(to, 'secret.key'), 'utf8')).toBe('s3cret');
    await rm(to, { recursive: true });
    expect(await readManifest({ store, key })).toMatchObject({
      projects: [{ name: 'cats', branches: [{ name: 'main', histories: [treeRef.historyId] }] }],
    });
    expect(reports.at(-1)?.problem).toBeNull();
  });

  test('uploads the newest segment again as it grows, and nothing that has not changed', async () => {
    await tree.makeBase();
    await tree.write(1_000);
    const uploader = newUploader();
    await settle(uploader);
    const before = await store.head(logKey(treeRef, one));
    await uploader.round();
    expect(await store.head(logKey(treeRef, one))).toEqual(before);
    await tree.write(1_000);
    await uploader.round();
    expect(await store.head(logKey(treeRef, one))).not.toEqual(before);
    await expectWhole();
  });

  test('goes on after a kill at any point, from what the store has', async () => {
    await tree.makeBase();
    await tree.write(2 * segment + 5);
    let left = 0;
    const dying = new Proxy(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (name !== 'put' && name !== 'remove') return typeof value === 'function' ? value.bind(target) : value;
        return (...args: Parameters<ObjectStore['put']>) => {
          left -= 1;
          if (left < 0) throw new Error('killed');
          return value.apply(target, args);
        };
      },
    });
    for (let writes = 0; writes < 9; writes += 1) {
      left = writes;
      const killed = newUploader({ store: dying });
      await killed.round().catch(() => {});
      await killed.stop();
      await tree.write(100);
      for (const { name } of (await document())?.bases ?? [])
        expect(await store.head(baseKey(treeRef, name)), name).not.toBeNull();
    }
    const uploader = newUploader();
    await settle(uploader);
    await expectWhole();
    expect((await stored('base')).length).toBe((await document())?.bases.length);
  });

  test('gives up base images and log that the window has left behind', async () => {
    const old = await tree.makeBase(new Date(Date.now() - 3 * dayMs));
    await tree.write(2 * segment, new Date(Date.now() - 2.9 * dayMs));
    const uploader = newUploader();
    await settle(uploader);
    const newer = await tree.makeBase(new Date(Date.now() - 2 * dayMs));
    await tree.write(2 * segment, new Date());
    await eventually(async () => {
      await uploader.round();
      expect((await document())?.bases).toEqual([newer]);
    });
    await uploader.round();
    expect(await stored('base')).toMatchObject([{ base: newer.name }]);
    expect(await storedLog()).not.toContain(one);
    expect(await store.head(baseKey(treeRef, old.name))).toBeNull();
    await expectWhole();
  });

  test('keeps every base image that the window needs', async () => {
    retentionSeconds = 7 * 86_400;
    const old = await tree.makeBase(new Date(Date.now() - 3 * dayMs));
    await tree.write(1_000);
    const uploader = newUploader();
    await settle(uploader);
    await uploader.round();
    expect((await document())?.bases).toEqual([old]);
  });

  test('says what was lost when the machine gives up log before the store could take it', async () => {
    await tree.makeBase();
    await tree.write(segment);
    const uploader = newUploader();
    await settle(uploader);
    const reached = (await document())?.until;
    await tree.write(2 * segment);
    const base = await tree.makeBase();
    await tree.write(1_000);
    await tree.dropLog(two);
    await settle(uploader);
    expect(await document()).toMatchObject({
      until: { lsn: tree.end() },
      gaps: [{ from: reached, until: { lsn: base.lsn } }],
    });
    expect(last()?.gapCount).toBe(1);
  });
});

describe('somebody else at the store', () => {
  test('who removes or changes an object does not do so for long', async () => {
    await tree.makeBase();
    await tree.write(2 * segment);
    const uploader = newUploader();
    await settle(uploader);
    await store.remove(logKey(treeRef, one));
    await store.put(logKey(treeRef, two), Buffer.from('nonsense'));
    for (const { ref, ...name } of await stored('base'))
      if (name.kind === 'base') await store.remove(baseKey(ref, name.base));
    await uploader.compare();
    await settle(uploader);
    await expectWhole();
    expect(await stored('base')).toHaveLength(1);
  });

  test('who changes the document while Catnap is down gets a new base image', async () => {
    await tree.makeBase();
    await tree.write(100);
    const first = newUploader();
    await settle(first);
    await first.stop();
    const [name = ''] = (await namesIn(store, 'projects/')).filter((one) => one.endsWith('history.json.gz.enc'));
    await store.put(name, Buffer.from('nonsense'));
    await settle(newUploader());
    expect((await document())?.bases).toHaveLength(1);
    await expectWhole();
  });

  test('who has claimed the prefix keeps it', async () => {
    await newUploader({ claimant: { installationId: 'other', keyId: key.id } }).round();
    await expect(newUploader().round()).rejects.toThrow(/belongs to another installation/);
    expect(await readClaim(store)).toMatchObject({ installationId: 'other' });
  });
});

describe('trouble', () => {
  test('of the store is reported and ends by itself', async () => {
    await tree.makeBase();
    await tree.write(100);
    const uploader = newUploader();
    uploader.start();
    await eventually(() => expect(last()?.baseCount).toBe(1));
    await rename(folder, `${folder}-away`);
    await tree.write(100);
    await eventually(() => expect(reports.at(-1)?.problem).toMatch(/the folder is not there/));
    expect(last()?.waitingBytes).toBeGreaterThan(0);
    await rename(`${folder}-away`, folder);
    await eventually(() => expect(reports.at(-1)).toMatchObject({ problem: null }));
    await eventually(expectWhole);
  });

  test('of a tree that is not there removes nothing', async () => {
    await tree.makeBase();
    await tree.write(100);
    const uploader = newUploader();
    await settle(uploader);
    const names = await namesIn(store);
    removable = [treeRef];
    await rename(tree.root, `${tree.root}-away`);
    await expect(uploader.round()).rejects.toThrow(/ENOENT/);
    expect(await namesIn(store)).toEqual(names);
    await rename(`${tree.root}-away`, tree.root);
  });

  test('a history that is gone for long enough is removed, and only then', async () => {
    await tree.makeBase();
    await tree.write(100);
    const uploader = newUploader();
    await settle(uploader);
    await rm(join(tree.root, treeRef.projectId), { recursive: true });
    await uploader.round();
    expect(reports.at(-1)).toMatchObject({ gone: [treeRef], histories: [] });
    expect(await namesIn(store, 'projects/')).not.toEqual([]);
    removable = [treeRef];
    await uploader.round();
    expect(await namesIn(store, 'projects/')).toEqual([]);
    expect(await readdir(folder)).not.toContain('projects');
  });

  test('of files that cannot be read is reported, for that history', async () => {
    await tree.makeBase();
    await tree.write(100);
    await writeFile(join(tree.root, treeRef.projectId, treeRef.historyId, 'history.json'), '{ not json');
    const uploader = newUploader();
    await uploader.round();
    expect(reports.at(-1)).toMatchObject({ problem: null, histories: [{ ...treeRef, baseCount: 0 }] });
    expect(last()?.problem).toMatch(/JSON/);
  });

  test('of a base image that is pruned while it is uploaded is no trouble', async () => {
    const base = await tree.makeBase();
    await tree.write(100);
    const path = join(tree.root, treeRef.projectId, treeRef.historyId, 'bases', base.name, 'pgdata');
    await rm(path, { recursive: true });
    await writeFile(path, 'not a folder');
    const uploader = newUploader();
    await uploader.round();
    await uploader.round();
    expect(last()).toMatchObject({ baseCount: 0, storedUntil: null, problem: null });
    expect(await stored('base')).toEqual([]);
  });
});
