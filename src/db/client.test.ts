import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { eventually, stays } from '../../test/helpers/eventually.ts';
import { databaseFailure } from '../lib/database-failure.ts';
import { type Database, openDatabase } from './client.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-client-'));
});
afterEach(() => rm(directory, { recursive: true }));

test('a database that is away is looked for often, however many requests have failed', async () => {
  const there = inject('systemDatabase');
  const path = join(directory, 'socket');
  const database = openDatabase({ ...there, path }, { poolSize: 10, name: 'test' });
  try {
    const startedAt = performance.now();
    const ask = () => database.sql`select 1 as one`;
    for (let round = 0; round < 3; round++) {
      const failed = await Promise.allSettled(Array.from({ length: 10 }, ask));
      for (const outcome of failed) {
        expect(outcome.status === 'rejected' && databaseFailure(outcome.reason)).toBe('not_begun');
      }
    }
    await symlink(there.path, path);
    expect(await ask()).toEqual([{ one: 1 }]);
    // The driver by itself waits at least ten seconds before the third round.
    expect(performance.now() - startedAt).toBeLessThan(9_000);
  } finally {
    await database.close();
  }
});

/** Opens as many connections as there are places, and returns how many there are at the moment. */
async function openAll(database: Database, name: string, count: number) {
  await Promise.all(Array.from({ length: count }, () => database.sql`select pg_sleep(0.2)`));
  const watching = openDatabase(inject('systemDatabase'), { poolSize: 1, name: 'test' });
  const open = async () => {
    const rows = await watching.sql`select 1 from pg_stat_activity where application_name = ${name}`;
    return rows.length;
  };
  return { open, close: () => watching.close() };
}

test('a pool that a few statements keep in use is small again after a busy moment', async () => {
  const name = `test-life-${process.pid}`;
  const database = openDatabase(inject('systemDatabase'), { poolSize: 5, name, lifeSeconds: 1 });
  const { open, close } = await openAll(database, name, 5);
  try {
    await eventually(async () => {
      await database.sql`select 1`;
      expect(await open()).toBeLessThanOrEqual(1);
    });
  } finally {
    await close();
    await database.close();
  }
});

test('a pool that keeps one connection closes the others when nobody uses it', async () => {
  const name = `test-keep-${process.pid}`;
  const database = openDatabase(inject('systemDatabase'), { poolSize: 4, name, idleSeconds: 1, keepsOne: true });
  const { open, close } = await openAll(database, name, 4);
  try {
    await eventually(async () => expect(await open()).toBe(1));
    await stays(async () => expect(await open()).toBeGreaterThanOrEqual(1), 2_500);
  } finally {
    await close();
    await database.close();
  }
});
