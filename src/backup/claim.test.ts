import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ClaimRefusedError, claimStore, readClaim, requireWriter } from './claim.ts';
import { FileStore } from './store/file-store.ts';
import type { ObjectStore } from './store/object-store.ts';

let folder: string;
let store: ObjectStore;
const ours = { installationId: 'ours', keyId: 'k1' };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-claim-'));
  store = new FileStore(folder);
});

afterEach(() => rm(folder, { recursive: true }));

test('a prefix is taken once, and again by each start of the same installation', async () => {
  expect(await readClaim(store)).toBeNull();
  const first = await claimStore(store, ours);
  await requireWriter(store, { ...ours, writer: first });
  const second = await claimStore(store, ours);
  expect(await readClaim(store)).toMatchObject({ ...ours, writer: second });
  await expect(requireWriter(store, { ...ours, writer: first })).rejects.toThrow(/another Catnap with a copy/);
});

test('another installation is refused', async () => {
  await claimStore(store, ours);
  await expect(claimStore(store, { ...ours, installationId: 'theirs' })).rejects.toThrow(/belongs to another/);
  expect(await readClaim(store)).toMatchObject(ours);
});

test('another key is refused, since nobody could open all of it with one key', async () => {
  await claimStore(store, ours);
  await expect(claimStore(store, { ...ours, keyId: 'k2' })).rejects.toThrow(/another backup key/);
});

test.each(['', 'not json', '{}', '{"format":2}', 'null', '[]'])(
  'a claim that reads %j is nobody’s to take',
  async (text) => {
    await store.put('catnap.json', Buffer.from(text));
    await expect(claimStore(store, ours)).rejects.toThrow(ClaimRefusedError);
  },
);

test('of two that take it at once one is refused, also by a store that cannot put conditionally', async () => {
  const plain = new FileStore(folder);
  plain.put = (key, body) => store.put(key, body);
  for (const shared of [store, plain]) {
    await store.remove('catnap.json');
    const names = ['one', 'two', 'three'];
    const tried = await Promise.allSettled(
      names.map((installationId) => claimStore(shared, { ...ours, installationId })),
    );
    const owner = (await readClaim(store))?.installationId;
    const taken = tried.map(({ status }, at) => ({ status, name: names[at] }));
    // A store without conditions lets an earlier one believe in its claim for a moment; the next check tells it.
    expect(taken.find(({ name }) => name === owner)?.status).toBe('fulfilled');
    if (shared === store) expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  }
});

test('a claim that somebody has removed is noticed', async () => {
  const writer = await claimStore(store, ours);
  await store.remove('catnap.json');
  await expect(requireWriter(store, { ...ours, writer })).rejects.toThrow(/is gone/);
});
