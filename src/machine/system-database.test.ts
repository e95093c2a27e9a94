import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { makeTempHome, type TempHome } from '../../test/helpers/temp-home.ts';
import { findPostmaster } from '../compute/local/host/postgres/postmaster.ts';
import { createLogger } from '../lib/log.ts';
import { type SystemDatabase, type SystemDatabaseConnection, startSystemDatabase } from './system-database.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const undo: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function home(): Promise<TempHome> {
  const made = await makeTempHome({ share: inject('sharedBuildsHome') });
  undo.push(() => made.remove());
  return made;
}

async function started(place: TempHome): Promise<SystemDatabase> {
  const system = await startSystemDatabase(place.config, log);
  undo.push(() => system.stop());
  return system;
}

async function query<T>(connection: SystemDatabaseConnection, run: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres({ ...connection, max: 1 });
  try {
    return await run(sql);
  } finally {
    await sql.end();
  }
}

const pidOf = async (system: SystemDatabase, place: TempHome) =>
  (await findPostmaster(system.dataDirectory, place.config.uids?.systemDatabase ?? null))?.pid;

describe('the embedded system database', () => {
  test('answers, keeps its data over a stop, and belongs to its own uid', async () => {
    const place = await home();
    const system = await started(place);
    await query(system.connection, (sql) => sql`CREATE TABLE kept AS SELECT 42 AS n`);
    const uid = place.config.uids?.systemDatabase ?? process.getuid?.();
    expect((await stat(system.dataDirectory)).uid).toBe(uid);
    await system.stop();
    expect(await pidOf(system, place)).toBeUndefined();

    const again = await started(place);
    expect(await query(again.connection, (sql) => sql`SELECT n FROM kept`)).toEqual([{ n: 42 }]);
  });

  test('its login owns the database and is no superuser', async () => {
    const system = await started(await home());
    const [role] = await query(
      system.connection,
      (sql) => sql`SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = current_user`,
    );
    expect(role).toEqual({ rolsuper: false, rolcreatedb: true });
    const asSuperuser = { ...system.connection, username: 'postgres' };
    await expect(query(asSuperuser, (sql) => sql`SELECT 1`)).rejects.toThrow(/reject/);
  });

  test('a second start adopts the server that runs', async () => {
    const place = await home();
    const first = await started(place);
    const second = await started(place);
    expect(second.connection).toEqual(first.connection);
    expect(await pidOf(second, place)).toBe(await pidOf(first, place));
  });

  test('has its next log segments before it needs them, and uses them', async () => {
    const place = await home();
    const system = await started(place);
    const current = () =>
      query(system.connection, async (sql) => {
        const [row] = await sql<{ name: string }[]>`SELECT pg_walfile_name(pg_current_wal_insert_lsn()) AS name`;
        return row?.name ?? '';
      });
    const folder = join(system.dataDirectory, 'pg_wal');
    const segments = async () => (await readdir(folder)).filter((name) => /^[0-9A-F]{24}$/.test(name));
    const first = await current();
    await expect
      .poll(async () => (await segments()).filter((name) => name > first), { timeout: 60_000 })
      .toHaveLength(3);
    const next = (await segments()).filter((name) => name > first).sort();
    const { ino, uid } = await stat(join(folder, next[0] ?? ''));
    expect(uid).toBe(place.config.uids?.systemDatabase ?? process.getuid?.());
    await query(
      system.connection,
      (sql) => sql`CREATE TABLE filled AS SELECT repeat(md5(n::text), 30) AS x FROM generate_series(1, 30000) n`,
    );
    expect(await current()).toBe(next[1]);
    expect((await stat(join(folder, next[0] ?? ''))).ino).toBe(ino);
    process.kill((await pidOf(system, place)) ?? 0, 'SIGKILL');
    const count = () => query(system.connection, (sql) => sql`SELECT count(*)::int AS n FROM filled`).catch(() => null);
    await expect.poll(count, { timeout: 60_000 }).toEqual([{ n: 30_000 }]);
  });

  test('comes back after a kill -9 of the server', async () => {
    const place = await home();
    const system = await started(place);
    const pid = await pidOf(system, place);
    process.kill(pid ?? 0, 'SIGKILL');
    await expect
      .poll(() => query(system.connection, (sql) => sql`SELECT 1 AS one`).catch(() => null), { timeout: 20_000 })
      .toEqual([{ one: 1 }]);
    expect(await pidOf(system, place)).not.toBe(pid);
  });

  test('starts over a pid file whose pid some other process has', async () => {
    const place = await home();
    const system = await started(place);
    const pidFile = join(system.dataDirectory, 'postmaster.pid');
    const lines = (await readFile(pidFile, 'utf8')).split('\n');
    await system.stop();
    await writeFile(pidFile, [String(process.pid), ...lines.slice(1)].join('\n'));
    const again = await started(place);
    expect(await query(again.connection, (sql) => sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
  });
});
