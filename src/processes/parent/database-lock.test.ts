import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeDatabase, type TestDatabase } from '../../../test/helpers/database.ts';
import { eventually } from '../../../test/helpers/eventually.ts';
import { createLogger } from '../../lib/log.ts';
import { takeDatabaseLock } from './database-lock.ts';

let made: TestDatabase;
beforeAll(async () => {
  made = await makeDatabase(2);
});
afterAll(() => made.drop());

const log = createLogger({ level: 'error', process: 'test', destination: { write: () => {} } });
const take = (lookMs = 60_000) => takeDatabaseLock(made.options, log, { waitMs: 0, lookMs });

it('a second Catnap on the database is refused, until the first one is gone', async () => {
  const first = await take();
  await expect(take()).rejects.toThrow('another Catnap is running on this system database');
  await first.release();
  const second = await take();
  await second.release();
});

it('another database has a lock of its own', async () => {
  const other = await makeDatabase(1);
  const first = await take();
  const second = takeDatabaseLock(other.options, log, { waitMs: 0 });
  await expect(second).resolves.toBeDefined();
  await Promise.all([first.release(), (await second).release()]);
  await other.drop();
});

it('waits for the session of one that was killed a moment ago', async () => {
  const first = await take();
  const second = takeDatabaseLock(made.options, log);
  await first.release();
  await expect(second).resolves.toBeDefined();
  await (await second).release();
});

it('is taken again when its session was ended', async () => {
  const { sql } = made.database;
  const lock = await take(20);
  const holders = () => sql<{ pid: number }[]>`
    select pid from pg_locks where locktype = 'advisory' and granted
      and database = (select oid from pg_database where datname = current_database())`;
  const [before] = await holders();
  await sql`select pg_terminate_backend(${before?.pid ?? 0})`;
  await eventually(async () => {
    const [now] = await holders();
    expect(now?.pid).toBeGreaterThan(0);
    expect(now?.pid).not.toBe(before?.pid);
  });
  await expect(take()).rejects.toThrow('another Catnap is running');
  await lock.release();
});
