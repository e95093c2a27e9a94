import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { databaseFailure } from '../lib/database-failure.ts';
import { openDatabase } from './client.ts';

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
