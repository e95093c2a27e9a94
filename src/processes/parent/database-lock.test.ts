import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeDatabase, type TestDatabase } from '../../../test/helpers/database.ts';
import { eventually } from '../../../test/helpers/eventually.ts';
import { connect } from '../../db/client.ts';
import { takeDatabaseLock } from './database-lock.ts';

let made: TestDatabase;
beforeAll(async () => {
  made = await makeDatabase(2);
});
afterAll(() => made.drop());

const take = (lookMs = 60_000) => takeDatabaseLock(made.options, { waitMs: 0, lookMs });

async function holder(): Promise<{ pid: number; name: string }> {
  const [found] = await made.database.sql<{ pid: number; name: string }[]>`
    select pid, application_name as name from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and granted
      and database = (select oid from pg_database where datname = current_database())`;
  if (found === undefined) throw new Error('nobody has the lock');
  return found;
}

const endHolder = async () => made.database.sql`select pg_terminate_backend(${(await holder()).pid})`;

/** Waits behind whoever holds it now, and is the next. */
async function queueUp(name: string) {
  const rival = connect(made.options, 1, name);
  const [me] = await rival<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const taken = rival`select pg_advisory_lock(7070003)`.then(
    () => true,
    () => false,
  );
  await eventually(async () => {
    const waiting = await made.database.sql`select from pg_locks where pid = ${me?.pid ?? 0} and not granted`;
    expect(waiting).toHaveLength(1);
  });
  return { pid: me?.pid, taken, end: () => rival.end({ timeout: 0 }) };
}

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
  const second = takeDatabaseLock(other.options, { waitMs: 0 });
  await expect(second).resolves.toBeDefined();
  await Promise.all([first.release(), (await second).release()]);
  await other.drop();
});

it('waits for the session of one that was killed a moment ago', async () => {
  const first = await take();
  const second = takeDatabaseLock(made.options);
  await first.release();
  await expect(second).resolves.toBeDefined();
  await (await second).release();
});

it('is taken again as soon as its session has ended', async () => {
  const lock = await take();
  const before = await holder();
  await endHolder();
  await eventually(async () => expect((await holder()).pid).not.toBe(before.pid));
  await expect(take()).rejects.toThrow('another Catnap is running');
  await lock.release();
});

it('is lost to another Catnap that was quicker, and says so', async () => {
  const lock = await take();
  const rival = await queueUp('catnap-lock-rival');
  await endHolder();
  expect((await lock.lost).message).toMatch(/another Catnap, from another data home, has taken over/);
  expect((await holder()).pid).toBe(rival.pid);
  await lock.release();
  await rival.end();
});

it('is not lost to an old session of its own that the server still has', async () => {
  const lock = await take();
  const old = await queueUp((await holder()).name);
  await endHolder();
  expect(await old.taken).toBe(true);
  await eventually(async () => expect((await holder()).pid).not.toBe(old.pid));
  await expect(take()).rejects.toThrow('another Catnap is running');
  await lock.release();
  await old.end();
});
