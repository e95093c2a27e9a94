import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chown, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import postgres from 'postgres';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { eventually, randomMoment } from '../../test/helpers/eventually.ts';
import { makeTempHome, type TempHome } from '../../test/helpers/temp-home.ts';
import { createLayout } from '../compute/local/host/home/layout.ts';
import { ensureBuild } from '../compute/local/host/postgres/builds.ts';
import { findPostmaster, startPostmaster } from '../compute/local/host/postgres/postmaster.ts';
import { createLogger } from '../lib/log.ts';
import {
  type SystemDatabase,
  type SystemDatabaseConnection,
  startSystemDatabase,
  systemDatabaseMajor,
} from './system-database.ts';

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

  test('its log is cut while it runs, and goes on', async () => {
    const place = await home();
    const system = await started(place);
    const logFile = join(createLayout(place.path).system, 'server.log');
    await appendFile(logFile, 'a line that nobody needs any more\n'.repeat(150_000));
    await eventually(async () => expect(await readFile(logFile, 'utf8')).toContain('the log had grown by 5'));
    expect((await stat(`${logFile}.1`)).size).toBeLessThanOrEqual(256 * 1024);
    const wrong = { ...system.connection, password: 'wrong' };
    await expect(query(wrong, (sql) => sql`SELECT 1`)).rejects.toThrow('password authentication failed');
    await eventually(async () => expect(await readFile(logFile, 'utf8')).toContain('password authentication failed'));
    expect((await stat(logFile)).size).toBeLessThan(10_000);
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
    await expect.poll(async () => (await segments()).filter((name) => name > first)).toHaveLength(3);
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
    await expect.poll(count).toEqual([{ n: 30_000 }]);
  });

  test('comes back after a kill -9 of the server', async () => {
    const place = await home();
    const system = await started(place);
    const pid = await pidOf(system, place);
    process.kill(pid ?? 0, 'SIGKILL');
    await expect
      .poll(() => query(system.connection, (sql) => sql`SELECT 1 AS one`).catch(() => null))
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

  test('starts where the killed server is a zombie that nobody ever reaps', async () => {
    const place = await home();
    const system = await started(place);
    const pidFile = join(system.dataDirectory, 'postmaster.pid');
    const lines = (await readFile(pidFile, 'utf8')).split('\n');
    await system.stop();
    const uid = place.config.uids?.systemDatabase ?? null;
    const zombie = await makeZombie(uid);
    await writeFile(pidFile, [String(zombie), ...lines.slice(1)].join('\n'));
    if (uid !== null) await chown(pidFile, uid, uid);
    const again = await started(place);
    expect(await query(again.connection, (sql) => sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    expect((await readFile(`/proc/${zombie}/stat`, 'utf8')).split(') ')[1]).toMatch(/^Z/);
  });

  test('starts anew when the server that it adopts was about to end', async () => {
    const place = await home();
    const first = await started(place);
    await first.stop();
    const uid = place.config.uids?.systemDatabase ?? null;
    const build = await ensureBuild(systemDatabaseMajor, place.config, createLayout(place.path), () => undefined);
    const { pid } = await startPostmaster({
      program: join(build.bin, 'postgres'),
      dataDirectory: first.dataDirectory,
      uid,
      logFile: join(place.path, 'system', 'server.log'),
      arguments: ['-c', `config_file=${join(place.path, 'system', 'postgresql.conf')}`],
    });
    // It is found running, but does not answer any more.
    process.kill(pid, 'SIGSTOP');
    const adopting = startSystemDatabase(place.config, log);
    undo.push(async () => (await adopting).stop());
    await randomMoment(500, 1_000);
    process.kill(pid, 'SIGKILL');
    expect(await query((await adopting).connection, (sql) => sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    expect(await pidOf(first, place)).not.toBe(pid);
  });
});

/** Its parent becomes `sleep`, which waits for no child. Until then it lives, or the shell might still reap it. */
async function makeZombie(uid: number | null): Promise<number> {
  const owner = uid === null ? {} : { uid, gid: uid };
  const script = 'cat <&3 & echo $!; exec sleep 600 3<&-';
  const stdio = ['ignore', 'pipe', 'ignore', 'pipe'] as const;
  const parent = spawn('/bin/sh', ['-c', script], { cwd: '/', stdio: [...stdio], ...owner });
  undo.push(async () => {
    parent.kill('SIGKILL');
    await once(parent, 'close');
  });
  const [said] = await once(parent.stdout as Readable, 'data');
  const pid = Number(String(said));
  await eventually(async () => expect(await readFile(`/proc/${parent.pid}/cmdline`, 'utf8')).toMatch(/^sleep/));
  (parent.stdio[3] as Writable).end();
  await eventually(async () => expect(await readFile(`/proc/${pid}/stat`, 'utf8')).toContain(') Z '));
  return pid;
}
