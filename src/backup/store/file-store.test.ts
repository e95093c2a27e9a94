import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describeStore, namesIn, readObject } from '../../../test/helpers/store-contract.ts';
import { createPace, limitUploads } from './bandwidth.ts';
import { FileStore } from './file-store.ts';
import type { ObjectStore } from './object-store.ts';

const newFolder = () => mkdtemp(join(tmpdir(), 'cn-store-'));

const subject = (wrap: (store: ObjectStore) => ObjectStore) => async () => {
  const folder = await newFolder();
  return {
    store: wrap(new FileStore(folder)),
    refusesToReplace: true,
    close: () => rm(folder, { recursive: true }),
  };
};

describeStore(
  'a store in a folder',
  subject((store) => store),
);
describeStore(
  'a store in a folder whose uploads are limited',
  subject((store) => limitUploads(store, 200_000_000)),
);

let folder: string;
let store: FileStore;

beforeEach(async () => {
  folder = await newFolder();
  store = new FileStore(folder);
});

afterEach(() => rm(folder, { recursive: true, force: true }));

test('files and folders are the owner’s alone', async () => {
  await store.put('a/b/c', Buffer.from('x'));
  expect((await stat(join(folder, 'a/b/c'))).mode & 0o777).toBe(0o600);
  expect((await stat(join(folder, 'a/b'))).mode & 0o777).toBe(0o700);
});

test('a folder that is gone, such as a disk that is not mounted, is no empty store', async () => {
  await store.put('a', Buffer.from('x'));
  await rename(folder, `${folder}-away`);
  await expect(namesIn(store)).rejects.toMatchObject({ name: 'StoreError', trouble: 'unreachable' });
  await expect(store.put('b', Buffer.from('x'))).rejects.toMatchObject({ trouble: 'unreachable' });
  await expect(store.get('a')).rejects.toMatchObject({ trouble: 'unreachable' });
  await expect(store.head('a')).rejects.toMatchObject({ trouble: 'unreachable' });
  await rename(`${folder}-away`, folder);
  expect(await namesIn(store)).toEqual(['a']);
});

test('an upload that was killed leaves nothing for long', async () => {
  await mkdir(join(folder, '.unfinished'));
  const [old, fresh] = [join(folder, '.unfinished', 'old'), join(folder, '.unfinished', 'fresh')];
  await Promise.all([old, fresh].map((path) => writeFile(path, 'half')));
  await utimes(old, new Date(0), new Date(0));
  expect(await namesIn(store)).toEqual([]);
  await store.sweep();
  expect(await readdir(join(folder, '.unfinished'))).toEqual(['fresh']);
});

test('an object is put while the last other one of its folder is removed', async () => {
  for (let round = 0; round < 50; round += 1) {
    await store.put('f/old', Buffer.from('x'));
    await Promise.all([store.remove('f/old'), store.put('f/new', Buffer.from(`${round}`))]);
    expect((await readObject(store, 'f/new')).toString()).toBe(`${round}`);
    await store.remove('f/new');
  }
  expect(await readdir(folder)).toEqual(['.unfinished']);
});

test('a limit holds for all uploads together', async () => {
  const limited = limitUploads(store, 1_000_000);
  const startedAt = performance.now();
  await Promise.all(['a', 'b'].map((key) => limited.put(key, Buffer.alloc(200_000))));
  // The last piece may leave as soon as the time of those before it has passed.
  expect(performance.now() - startedAt).toBeGreaterThan(250);
});

test('a pace does not save up time that nobody has used', async () => {
  let nowMs = 0;
  const pace = createPace(1_000_000, () => nowMs);
  await pace(1_000);
  nowMs = 60_000;
  await pace(100_000);
  const startedAt = performance.now();
  await pace(1);
  expect(performance.now() - startedAt).toBeGreaterThan(90);
});
