/** Uploads that are interrupted, a store that is full, and a clock that jumps. */
import { rmSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { treeRef } from '../../../test/helpers/history-tree.ts';
import { namesIn } from '../../../test/helpers/store-contract.ts';
import { troubled, UploadStage, uploadKey } from '../../../test/helpers/upload-stage.ts';
import { dayMs, hourMs } from '../../lib/clock.ts';
import { segmentBytes } from '../../lib/log-segments.ts';
import { createSteadyTime } from '../../lib/steady-time.ts';
import type { BaseImage } from '../documents.ts';
import { basePartKeys } from '../layout.ts';
import { open } from '../seal/seal.ts';
import { StoreError } from '../store/object-store.ts';
import { unpackFolder } from '../tar.ts';
import type { Uploader } from './uploader.ts';

const segment = Number(segmentBytes);
let stage: UploadStage;

beforeEach(async () => {
  stage = await UploadStage.make();
});

afterEach(() => stage.close());

const folderOf = ({ name }: BaseImage) =>
  join(stage.tree.root, treeRef.projectId, treeRef.historyId, 'bases', name, 'pgdata');

/** Each file is a part of its own. */
const partBytesMax = 1_000;
const fileCount = 12;

async function makeLargeBase(): Promise<BaseImage> {
  const base = await stage.tree.makeBase();
  await mkdir(join(folderOf(base), 'base', '5'));
  for (let n = 1; n <= fileCount; n++) {
    await writeFile(join(folderOf(base), 'base', '5', `${n}`), Buffer.alloc(2_000, n));
  }
  await stage.tree.write(100);
  return base;
}

async function expectRestorable(base: BaseImage): Promise<void> {
  const found = (await stage.document())?.bases.find(({ name }) => name === base.name);
  const to = await mkdtemp(join(tmpdir(), 'cn-parts-'));
  try {
    for (const key of basePartKeys(treeRef, found ?? { name: base.name, parts: 0 })) {
      await unpackFolder(open(uploadKey, key, await stage.store.get(key)), to);
    }
    const names = (folder: string) => readdir(folder, { recursive: true }).then((all) => all.toSorted());
    expect(await names(to)).toEqual(await names(folderOf(base)));
    const seventh = join('base', '5', '7');
    expect(await readFile(join(to, seventh))).toEqual(await readFile(join(folderOf(base), seventh)));
  } finally {
    await rm(to, { recursive: true });
  }
}

describe('a base image in parts', () => {
  test('goes on where it was interrupted, over failures of the store and restarts', async () => {
    const base = await makeLargeBase();
    const sent: string[] = [];
    let left = 0;
    const failing = troubled(stage.store, (action, key) => {
      if (action !== 'put' || !key.includes('/bases/')) return;
      left -= 1;
      if (left < 0) throw new StoreError('unreachable', 'no answer');
      sent.push(key);
    });
    // Another one each time: a newer base image on the machine must not make the upload begin anew.
    for (let attempts = 0; (await stage.document())?.bases.length !== 1; attempts += 1) {
      expect(attempts).toBeLessThan(fileCount);
      left = 3;
      const uploader = stage.newUploader({ store: failing, partBytesMax });
      await uploader.round();
      await eventually(async () => expect(left < 0 || (await stage.document())?.bases.length === 1).toBe(true));
      await uploader.stop();
      if (attempts < 3) await stage.tree.makeBase();
    }
    expect((await stage.document())?.bases).toMatchObject([{ name: base.name, parts: sent.length }]);
    expect(sent.length).toBeGreaterThan(fileCount);
    expect(new Set(sent).size).toBe(sent.length);
    await expectRestorable(base);
  });

  test('goes on by itself, and is reported with its problem until then', async () => {
    const base = await makeLargeBase();
    let left = 5;
    const failing = troubled(stage.store, (action, key) => {
      if (action !== 'put' || !key.includes('/bases/')) return;
      left -= 1;
      if (left < 0) throw new StoreError('unreachable', 'no answer');
    });
    const uploader = stage.newUploader({ store: failing, partBytesMax });
    uploader.start();
    await eventually(() => expect(stage.last()).toMatchObject({ baseCount: 0, problem: 'no answer' }));
    expect(await stage.stored('base')).toHaveLength(5);
    left = Number.POSITIVE_INFINITY;
    await eventually(() => expect(stage.last()).toMatchObject({ baseCount: 1, problem: null }));
    await expectRestorable(base);
  });

  test('of which somebody removes one is completed again, by that one alone', async () => {
    const base = await makeLargeBase();
    const sent: string[] = [];
    const watched = troubled(stage.store, (action, key) => {
      if (action === 'put' && key.includes('/bases/')) sent.push(key);
    });
    const uploader = stage.newUploader({ store: watched, partBytesMax });
    await stage.settle(uploader);
    const [, , third = ''] = sent.splice(0);
    await stage.store.remove(third);
    await uploader.compare();
    expect(stage.last()?.baseCount).toBe(1);
    await stage.settle(uploader);
    expect(sent).toEqual([third]);
    await expectRestorable(base);
  });
});

test('base images of two histories go up at once, and no more', async () => {
  await stage.tree.makeBase();
  await stage.tree.write(100);
  const [project, ids] = [join(stage.tree.root, treeRef.projectId), ['11aa11bb22cc33dd', '22aa11bb22cc33dd']];
  for (const id of ids) await cp(join(project, treeRef.historyId), join(project, id), { recursive: true });
  let [underWay, most] = [0, 0];
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const store = new Proxy(stage.store, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (name !== 'put') return typeof value === 'function' ? value.bind(target) : value;
      return async (...args: Parameters<typeof target.put>) => {
        if (!args[0].includes('/bases/')) return target.put(...args);
        underWay += 1;
        most = Math.max(most, underWay);
        await opened;
        return target.put(...args).finally(() => {
          underWay -= 1;
        });
      };
    },
  });
  const uploader = stage.newUploader({ store });
  await uploader.round();
  await eventually(() => expect(underWay).toBe(2));
  await uploader.round();
  expect(underWay).toBe(2);
  open();
  await eventually(async () => {
    await uploader.round();
    expect(stage.reports.at(-1)?.histories.map(({ baseCount }) => baseCount)).toEqual([1, 1, 1]);
  });
  expect(most).toBe(2);
});

describe('a file of the machine that cannot be read', () => {
  /** As root, rights are no obstacle; a folder in the place of a file is. */
  async function makeUnreadable(path: string): Promise<() => Promise<void>> {
    const bytes = await readFile(path);
    await rm(path);
    await mkdir(path);
    return async () => {
      await rm(path, { recursive: true });
      await writeFile(path, bytes);
    };
  }

  test('is a problem of its history if it is log, until it can be read', async () => {
    const uploader = stage.newUploader();
    await stage.tree.makeBase();
    await stage.tree.write(100);
    await stage.settle(uploader);
    await stage.tree.write(2 * segment);
    const folder = join(stage.tree.root, treeRef.projectId, treeRef.historyId, 'log');
    const newest = (await readdir(folder)).toSorted().at(-1) ?? '';
    const mend = await makeUnreadable(join(folder, newest));
    await uploader.round();
    const problem = `the log segment ${newest} cannot be read on this machine: EISDIR`;
    expect(stage.last()?.problem).toMatch(new RegExp(`^${problem}`));
    await mend();
    await stage.settle(uploader);
    expect(stage.last()?.problem).toBeNull();
    await stage.expectWhole();
  });

  test('is a problem of its history if it is part of a base image, until it can be read', async () => {
    const base = await makeLargeBase();
    let mend = async () => {};
    let parts = 0;
    const store = new Proxy(stage.store, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (name !== 'put') return typeof value === 'function' ? value.bind(target) : value;
        return async (...args: Parameters<typeof target.put>) => {
          if (args[0].includes('/bases/') && ++parts === 3)
            mend = await makeUnreadable(join(folderOf(base), 'base', '5', '7'));
          return target.put(...args);
        };
      },
    });
    const uploader = stage.newUploader({ store, partBytesMax });
    uploader.start();
    const problem = `the base image ${base.name} cannot be read on this machine: EISDIR`;
    await eventually(() => expect(stage.last()?.problem).toMatch(new RegExp(`^${problem}`)));
    await mend();
    await eventually(() => expect(stage.last()).toMatchObject({ baseCount: 1, problem: null }));
    await expectRestorable(base);
  });

  test('that is gone is none', async () => {
    const base = await makeLargeBase();
    let isGone = false;
    const store = troubled(stage.store, (action, key) => {
      if (action !== 'put' || !key.includes('/bases/') || isGone) return;
      rmSync(join(folderOf(base), '..'), { recursive: true });
      isGone = true;
    });
    const uploader = stage.newUploader({ store, partBytesMax });
    await uploader.round();
    await eventually(() => expect(isGone).toBe(true));
    await stage.tree.makeBase();
    await stage.tree.write(100);
    await stage.settle(uploader);
    expect(stage.reports.map(({ histories }) => histories[0]?.problem ?? null)).not.toContainEqual(expect.any(String));
  });
});

describe('a full store', () => {
  let isFull: boolean;
  let uploader: Uploader;

  /** As a disk does: nothing can be written until enough was removed. */
  function makeUploader(freedBy = Number.POSITIVE_INFINITY): void {
    let removed = 0;
    const full = troubled(stage.store, (action) => {
      if (action === 'remove') removed += 1;
      if (removed >= freedBy) isFull = false;
      if (action === 'put' && isFull) throw new StoreError('full', 'no space is left');
    });
    uploader = stage.newUploader({ store: full });
  }

  beforeEach(() => {
    isFull = false;
  });

  test('is said, and uploads go on by themselves when there is room', async () => {
    makeUploader();
    await stage.tree.makeBase();
    await stage.tree.write(100);
    uploader.start();
    await eventually(() => expect(stage.last()?.baseCount).toBe(1));
    isFull = true;
    await stage.tree.write(segment);
    await eventually(() => expect(stage.reports.at(-1)?.problem).toBe('no space is left'));
    expect(stage.last()?.waitingBytes).toBeGreaterThan(0);
    isFull = false;
    await eventually(stage.expectWhole);
    await eventually(() => expect(stage.reports.at(-1)?.problem).toBeNull());
  });

  test('gives up what the window has left behind, though not even a document fits any more', async () => {
    makeUploader(2);
    stage.retentionSeconds = 2.5 * 86_400;
    const old = await stage.tree.makeBase(new Date(Date.now() - 3 * dayMs));
    await stage.tree.write(2 * segment, new Date(Date.now() - 2.9 * dayMs));
    await stage.settle(uploader);
    const newer = await stage.tree.makeBase(new Date(Date.now() - 2 * dayMs));
    await stage.tree.write(100);
    await eventually(async () => {
      await uploader.round();
      expect((await stage.document())?.bases).toMatchObject([{ name: old.name }, { name: newer.name }]);
    });
    isFull = true;
    await stage.tree.write(100);
    await expect(uploader.round()).rejects.toThrow('no space is left');
    expect(isFull).toBe(true);
    stage.retentionSeconds = 86_400;
    await expect(uploader.round()).rejects.toThrow('no space is left');
    await uploader.round();
    expect((await stage.document())?.bases).toMatchObject([{ name: newer.name }]);
    expect(await namesIn(stage.store)).not.toContainEqual(expect.stringContaining(old.name));
    await stage.expectWhole();
  });

  test('loses what was deleted long ago', async () => {
    makeUploader(1);
    await stage.tree.makeBase();
    await stage.tree.write(100);
    await stage.settle(uploader);
    await rm(join(stage.tree.root, treeRef.projectId), { recursive: true });
    isFull = true;
    stage.removable = [treeRef];
    uploader.start();
    await eventually(async () => expect(await namesIn(stage.store, 'projects/')).toEqual([]));
    await eventually(() => expect(stage.reports.at(-1)?.problem).toBeNull());
  });
});

test('a clock that jumps forward takes nothing from the window', async () => {
  let [clockMs, passedMs] = [Date.now(), 0];
  const time = createSteadyTime({ clockMs: () => clockMs, passedMs: () => passedMs });
  const uploader = stage.newUploader({ time });
  stage.retentionSeconds = 86_400;
  const first = await stage.tree.makeBase(new Date(clockMs - 2 * dayMs));
  await stage.tree.write(2 * segment, new Date(clockMs - dayMs));
  await stage.settle(uploader);
  const second = await stage.tree.makeBase(new Date(clockMs - dayMs + 0.5 * hourMs));
  await stage.tree.write(100, new Date(clockMs));
  const basesAfter = async (ms: number) => {
    clockMs += ms;
    await uploader.round();
    return (await stage.document())?.bases.map(({ name }) => name);
  };
  await eventually(async () => expect(await basesAfter(0)).toEqual([first.name, second.name]));
  expect(await basesAfter(hourMs)).toEqual([first.name, second.name]);
  expect(await basesAfter(-hourMs)).toEqual([first.name, second.name]);
  passedMs += hourMs;
  expect(await basesAfter(hourMs)).toEqual([second.name]);
  expect(await basesAfter(-hourMs)).toEqual([second.name]);
});
