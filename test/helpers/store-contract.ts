/** What every kind of store must do, as tests that its own test file calls. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NoSuchObjectError, ObjectExistsError, type ObjectStore } from '../../src/backup/store/object-store.ts';

export interface StoreSubject {
  readonly store: ObjectStore;
  /** Whether a put that must not replace an object is refused; a mock may not do it. */
  readonly refusesToReplace: boolean;
  close(): Promise<void>;
}

export async function namesIn(store: ObjectStore, prefix = ''): Promise<string[]> {
  const names: string[] = [];
  for await (const { key } of store.list(prefix)) names.push(key);
  return names.sort();
}

export const readObject = async (store: ObjectStore, key: string) => buffer(await store.get(key));

export function describeStore(kind: string, openSubject: () => Promise<StoreSubject>): void {
  describe(kind, () => {
    let subject: StoreSubject;
    let store: ObjectStore;

    beforeAll(async () => {
      subject = await openSubject();
      store = subject.store;
    });

    afterAll(() => subject.close());

    test('keeps an object, and the newest of its versions', async () => {
      const first = await store.put('kept/a.b/c.enc', Buffer.from('one'));
      expect(first).toMatchObject({ key: 'kept/a.b/c.enc', bytes: 3 });
      expect(await store.head('kept/a.b/c.enc')).toMatchObject({ bytes: 3, version: first.version });
      expect((await readObject(store, 'kept/a.b/c.enc')).toString()).toBe('one');
      const second = await store.put('kept/a.b/c.enc', Readable.from([Buffer.from('two'), Buffer.from('!')]));
      expect(second.version).not.toBe(first.version);
      expect((await readObject(store, 'kept/a.b/c.enc')).toString()).toBe('two!');
      expect(await store.head('kept/a.b/c.enc')).toMatchObject({ bytes: 4, version: second.version });
    });

    test('keeps an object that takes several parts', async () => {
      const pieces = Array.from({ length: 20 }, () => randomBytes(1_048_576));
      const stored = await store.put('large', Readable.from(pieces), { bytesAtMost: 20_971_520 });
      expect(stored.bytes).toBe(20_971_520);
      expect((await readObject(store, 'large')).equals(Buffer.concat(pieces))).toBe(true);
      expect(await store.head('large')).toMatchObject({ bytes: 20_971_520, version: stored.version });
    });

    test('lists by prefix, with the versions that put has returned', async () => {
      const put = await Promise.all(
        ['list/a/1', 'list/a/2', 'list/ab/1'].map((key) => store.put(key, Buffer.from(key))),
      );
      expect(await namesIn(store, 'list/')).toEqual(['list/a/1', 'list/a/2', 'list/ab/1']);
      expect(await namesIn(store, 'list/a/')).toEqual(['list/a/1', 'list/a/2']);
      expect(await namesIn(store, 'list/a')).toEqual(['list/a/1', 'list/a/2', 'list/ab/1']);
      expect(await namesIn(store, 'nothing/')).toEqual([]);
      for await (const { key, version, bytes } of store.list('list/')) {
        expect({ version, bytes }).toEqual({
          version: put.find((one) => one.key === key)?.version,
          bytes: key.length,
        });
      }
    });

    test('removes, also what is not there', async () => {
      await store.put('gone/a', Buffer.from('x'));
      await store.remove('gone/a');
      await store.remove('gone/a');
      expect(await store.head('gone/a')).toBeNull();
      expect(await namesIn(store, 'gone/')).toEqual([]);
      await expect(store.get('gone/a')).rejects.toThrow(NoSuchObjectError);
    });

    test('keeps the old object when the new one fails on its way', async () => {
      await store.put('half', Buffer.from('whole'));
      const failing = Readable.from(
        (async function* () {
          yield randomBytes(1_000);
          throw new Error('the source failed');
        })(),
      );
      await expect(store.put('half', failing)).rejects.toThrow('the source failed');
      expect((await readObject(store, 'half')).toString()).toBe('whole');
    });

    test('does not replace what must be new', async () => {
      await store.put('new', Buffer.from('first'), { ifAbsent: true });
      if (!subject.refusesToReplace) return;
      await expect(store.put('new', Buffer.from('second'), { ifAbsent: true })).rejects.toThrow(ObjectExistsError);
      expect((await readObject(store, 'new')).toString()).toBe('first');
    });

    test.each(['', '../a', 'a/../b', '/a', 'a//b', 'a/', '.hidden', 'a/.b', 'ä', 'a b'])(
      'refuses %j as a name',
      async (key) => {
        await expect(Promise.resolve().then(() => store.put(key, Buffer.from('x')))).rejects.toThrow(
          /not the name of an object/,
        );
      },
    );

    test('is swept without losing anything', async () => {
      await store.put('swept', Buffer.from('x'));
      await store.sweep();
      expect((await readObject(store, 'swept')).toString()).toBe('x');
    });
  });
}
