import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { type HistoryTree, treeRef } from '../../../test/helpers/history-tree.ts';
import { namesIn } from '../../../test/helpers/store-contract.ts';
import { troubled, UploadStage, uploadKey } from '../../../test/helpers/upload-stage.ts';
import { segmentBytes } from '../../lib/log-segments.ts';
import type { LogPosition } from '../../lib/moments.ts';
import { readClaim } from '../claim.ts';
import { type BaseImage, readManifest, writeHistoryDocument } from '../documents.ts';
import { basePartKeys, homeKey, logKey, parseKey } from '../layout.ts';
import { open } from '../seal/seal.ts';
import type { ObjectStore } from '../store/object-store.ts';
import { unpackFolder } from '../tar.ts';
import type { Uploader, UploaderParts } from './uploader.ts';

const segment = Number(segmentBytes);
const dayMs = 86_400_000;
let stage: UploadStage;
let tree: HistoryTree;
let store: ObjectStore;
const document = () => stage.document();
const stored = (kind: 'log' | 'base') => stage.stored(kind);
const storedLog = () => stage.storedLog();
const last = () => stage.last();
const settle = (uploader: Uploader) => stage.settle(uploader);
const expectWhole = () => stage.expectWhole();
const newUploader = (changes?: Partial<UploaderParts>) => stage.newUploader(changes);
const basesThere = async () => (await document())?.bases.map(({ name }) => name);

beforeEach(async () => {
  stage = await UploadStage.make();
  ({ tree, store } = stage);
});

afterEach(() => stage.close());

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
    const [part = ''] = basePartKeys(treeRef, { name: base.name, parts: 1 });
    await unpackFolder(open(uploadKey, part, await store.get(part)), to);
    expect(await readFile(join(to, 'PG_VERSION'), 'utf8')).toBe('17\n');
    await unpackFolder(open(uploadKey, homeKey, await store.get(homeKey)), to);
    expect(await readFile(join(to, 'secret.key'), 'utf8')).toBe('s3cret');
    await rm(to, { recursive: true });
    expect(await readManifest({ store, key: uploadKey })).toMatchObject({
      projects: [{ name: 'cats', branches: [{ name: 'main', histories: [treeRef.historyId] }] }],
    });
    expect(stage.reports.at(-1)?.problem).toBeNull();
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

  test('carries the base images of many histories one after the other, without a pause in between', async () => {
    await tree.makeBase();
    const project = join(tree.root, treeRef.projectId);
    const others = ['1', '2', '3', '4', '5'].map((digit) => digit.repeat(16));
    for (const id of others) await cp(join(project, treeRef.historyId), join(project, id), { recursive: true });
    await newUploader().round();
    await eventually(async () => expect(await stored('base')).toHaveLength(others.length + 1));
  });

  test('goes on after a kill at any point, from what the store has', async () => {
    await tree.makeBase();
    await tree.write(2 * segment + 5);
    let left = 0;
    const dying = troubled(store, () => {
      left -= 1;
      if (left < 0) throw new Error('killed');
    });
    for (let writes = 0; writes < 9; writes += 1) {
      left = writes;
      const killed = newUploader({ store: dying });
      await killed.round().catch(() => {});
      await killed.stop();
      await tree.write(100);
      const named = ((await document())?.bases ?? []).flatMap((base) => basePartKeys(treeRef, base));
      for (const name of named) expect(await store.head(name), name).not.toBeNull();
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
      expect(await basesThere()).toEqual([newer.name]);
    });
    await uploader.round();
    expect((await stored('base')).map(parseKey)).toMatchObject([{ base: newer.name }]);
    expect(await storedLog()).not.toContain(one);
    expect(await namesIn(store)).not.toContainEqual(expect.stringContaining(old.name));
    await expectWhole();
  });

  test('keeps every base image that the window needs', async () => {
    stage.retentionSeconds = 7 * 86_400;
    const old = await tree.makeBase(new Date(Date.now() - 3 * dayMs));
    await tree.write(1_000);
    const uploader = newUploader();
    await settle(uploader);
    await uploader.round();
    expect(await basesThere()).toEqual([old.name]);
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

describe('a log that goes on to another timeline', () => {
  const changed = '00000002.history';

  test('is uploaded behind the base image of the earlier one, and needs no other', async () => {
    const base = await tree.makeBase();
    await tree.write(segment + 1_000);
    const uploader = newUploader();
    await settle(uploader);
    await tree.changeTimeline();
    await tree.write(1_000);
    await tree.makeBase();
    await tree.write(segment);
    await settle(uploader);
    expect(await document()).toMatchObject({ timeline: 2, gaps: [], until: { lsn: tree.end() } });
    expect(await basesThere()).toEqual([base.name]);
    const after = ['000000020000000000000002', '000000020000000000000003'];
    expect(await storedLog()).toEqual([one, two, changed, ...after]);
    expect(last()?.gapCount).toBe(0);
    await expectWhole();
  });

  test('is given up with the last base image that needs it', async () => {
    await tree.makeBase(new Date(Date.now() - 3 * dayMs));
    await tree.write(segment + 1_000, new Date(Date.now() - 2.9 * dayMs));
    const uploader = newUploader();
    await settle(uploader);
    await tree.changeTimeline();
    const newer = await tree.makeBase(new Date(Date.now() - 2 * dayMs));
    await tree.write(segment, new Date());
    await eventually(async () => {
      await uploader.round();
      expect(await basesThere()).toEqual([newer.name]);
    });
    expect((await storedLog()).filter((name) => name < '00000002')).toEqual([]);
    expect(await storedLog()).toContain(changed);
    await expectWhole();
  });

  test.each([
    ['of the earlier timeline', two],
    ['of the change', '000000020000000000000003'],
  ])('has a gap where a segment %s is missing', async (_, lost) => {
    await expectGap(lost, async () => (await document())?.until);
  });

  test('has a gap where nothing says at which position it did', async () => {
    await expectGap(changed, async (base) => ({ at: base.at, lsn: base.lsn }));
  });

  async function expectGap(lost: string, since: (first: BaseImage) => Promise<LogPosition | null | undefined>) {
    const first = await tree.makeBase();
    await tree.write(segment);
    const uploader = newUploader();
    await settle(uploader);
    const from = await since(first);
    await tree.write(segment + 500);
    await tree.changeTimeline();
    await tree.write(segment);
    const base = await tree.makeBase();
    await tree.write(1_000);
    await tree.dropLog(lost);
    await settle(uploader);
    const gaps = [{ from, until: { at: base.at, lsn: base.lsn } }];
    expect(await document()).toMatchObject({ until: { lsn: tree.end() }, gaps });
    expect(last()?.gapCount).toBe(1);
    // What the store was told once stays, also for those who ask it next.
    await settle(newUploader());
    expect((await document())?.gaps).toEqual(gaps);
  }

  test('and was taken for a gap is none any more, as long as the machine has it', async () => {
    const base = await tree.makeBase();
    await tree.write(segment);
    await tree.changeTimeline();
    await tree.write(1_000);
    const first = newUploader();
    await settle(first);
    await first.stop();
    const [found, until] = [await document(), { at: base.at, lsn: tree.end() }];
    if (!found) throw new Error('the store has no document');
    const gaps = [{ from: { at: base.at, lsn: base.lsn }, until }];
    await writeHistoryDocument({ store, key: uploadKey }, { ...found, gaps });
    const uploader = newUploader();
    await settle(uploader);
    expect((await document())?.gaps).toEqual([]);
    expect(last()?.gapCount).toBe(0);
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
    for (const name of await stored('base')) await store.remove(name);
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
    await newUploader({ claimant: { installationId: 'other', keyId: uploadKey.id } }).round();
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
    await rename(stage.folder, `${stage.folder}-away`);
    await tree.write(100);
    await eventually(() => expect(stage.reports.at(-1)?.problem).toMatch(/the folder is not there/));
    expect(last()?.waitingBytes).toBeGreaterThan(0);
    // Whatever it cannot upload: how far the machine is ahead stays true.
    await tree.write(100);
    await eventually(() => expect(last()?.localUntil?.lsn).toBe(tree.end()));
    expect(last()?.storedUntil?.lsn).not.toBe(tree.end());
    await rename(`${stage.folder}-away`, stage.folder);
    await eventually(() => expect(stage.reports.at(-1)).toMatchObject({ problem: null }));
    await eventually(expectWhole);
  });

  test('of the store from the beginning leaves only what the machine has to be reported', async () => {
    await tree.makeBase();
    await tree.write(100);
    await rename(stage.folder, `${stage.folder}-away`);
    newUploader().start();
    const unmatched = [{ ...treeRef, branchId: 'br-quiet-cat-1', localUntil: { lsn: tree.end() } }];
    await eventually(() => expect(stage.reports.at(-1)).toMatchObject({ histories: [], gone: [], unmatched }));
    await rename(`${stage.folder}-away`, stage.folder);
    await eventually(() => expect(stage.reports.at(-1)).toMatchObject({ problem: null, unmatched: [] }));
  });

  test('of a tree that is not there removes nothing', async () => {
    await tree.makeBase();
    await tree.write(100);
    const uploader = newUploader();
    await settle(uploader);
    const names = await namesIn(store);
    stage.removable = [treeRef];
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
    expect(stage.reports.at(-1)).toMatchObject({ gone: [treeRef], histories: [] });
    expect(await namesIn(store, 'projects/')).not.toEqual([]);
    stage.removable = [treeRef];
    await uploader.round();
    expect(await namesIn(store, 'projects/')).toEqual([]);
    expect(await readdir(stage.folder)).not.toContain('projects');
  });

  test('of files that cannot be read is reported, for that history', async () => {
    await tree.makeBase();
    await tree.write(100);
    await writeFile(join(tree.root, treeRef.projectId, treeRef.historyId, 'history.json'), '{ not json');
    const uploader = newUploader();
    await uploader.round();
    expect(stage.reports.at(-1)).toMatchObject({ problem: null, histories: [{ ...treeRef, baseCount: 0 }] });
    expect(last()?.problem).toMatch(/JSON/);
  });

  test('of a base image that is still kept and has lost its files is a problem of its history', async () => {
    const base = await tree.makeBase();
    await tree.write(100);
    const path = join(tree.root, treeRef.projectId, treeRef.historyId, 'bases', base.name, 'pgdata');
    await rm(path, { recursive: true });
    await writeFile(path, 'not a folder');
    const uploader = newUploader();
    await eventually(async () => {
      await uploader.round();
      expect(last()?.problem).toMatch(`the base image ${base.name} is gone`);
    });
    expect(last()).toMatchObject({ baseCount: 0, storedUntil: null });
    expect(await stored('base')).toEqual([]);
  });
});
