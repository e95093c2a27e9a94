import { chmod, cp, mkdir, readdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { makeTempHome, type TempHome } from '../../../test/helpers/temp-home.ts';
import { chownTree } from '../../compute/local/host/copy/tree.ts';
import { type HistoryPaths, readBases, readMarks, readState } from '../../compute/local/host/history/files.ts';
import { planRecovery } from '../../compute/local/host/history/plan.ts';
import { ensureBuild } from '../../compute/local/host/postgres/builds.ts';
import { readControlFile } from '../../compute/local/host/postgres/control-file.ts';
import { findPostmaster } from '../../compute/local/host/postgres/postmaster.ts';
import { isSegment, segmentsOf } from '../../compute/local/host/postgres/wal-segments.ts';
import { createLogger } from '../../lib/log.ts';
import { lsnBytes, type Moment } from '../../lib/moments.ts';
import { ensureHome } from '../home.ts';
import { recover } from '../recovery/recover.ts';
import { startScratchServer } from '../recovery/scratch-server.ts';
import { type SystemDatabase, type SystemDatabaseConnection, startSystemDatabase } from '../system-database.ts';

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

async function started(place: TempHome, backup: object | null = {}): Promise<SystemDatabase> {
  const system = await startSystemDatabase({ ...place.config, backup: backup ?? undefined }, log);
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

const write = (system: SystemDatabase, n: number) =>
  query(system.connection, (sql) => sql`INSERT INTO kept VALUES (${n})`);

/** Builds the database of a moment from nothing but the history, and returns what its table holds. */
async function rowsAt(place: TempHome, paths: HistoryPaths, moment: Moment | null): Promise<number[]> {
  const state = await readState(paths);
  if (state === null) throw new Error('there is no history');
  const facts = { state, bases: await readBases(paths), marks: await readMarks(paths) };
  const plan = planRecovery(facts, moment ?? { kind: 'time', at: '9999-01-01T00:00:00Z' });
  const folder = join(place.path, 'work', `past-${undo.length}`);
  await mkdir(folder, { mode: 0o711 });
  undo.push(() => rm(folder, { recursive: true, force: true }));
  const dataDirectory = join(folder, 'pgdata');
  await cp(join(paths.bases, plan.base.name, 'pgdata'), dataDirectory, { recursive: true });
  // The plan's last segment may be one that nothing was written to yet.
  const copied = await readdir(paths.log);
  for (const name of plan.segments.filter((segment) => copied.includes(segment))) {
    const copy = join(dataDirectory, 'pg_wal', name);
    await cp(join(paths.log, name), copy);
    await truncate(copy, 16 * 1024 ** 2);
  }
  await chmod(dataDirectory, 0o700);
  const uid = place.config.uids?.systemDatabase ?? null;
  if (uid !== null) await chownTree(dataDirectory, uid);
  const layout = await ensureHome(place.config);
  const spec = {
    build: await ensureBuild(17, place.config, layout),
    dataDirectory,
    uid,
    layout,
    logFile: join(folder, 'log'),
  };
  await recover(spec, moment);
  const server = await startScratchServer(spec);
  const sql = server.connect('postgres', 'catnap');
  try {
    return (await sql<{ n: number }[]>`SELECT n FROM public.kept ORDER BY n`).map(({ n }) => n);
  } finally {
    await sql.end();
    await server.stop();
  }
}

const until = (paths: HistoryPaths, lsn: string) =>
  eventually(async () => {
    const copied = (await readState(paths))?.copied?.lsn ?? '0/0';
    expect(lsnBytes(copied)).toBeGreaterThanOrEqual(lsnBytes(lsn));
  });

async function flushed(system: SystemDatabase): Promise<{ lsn: string; at: string }> {
  const [found] = await query(
    system.connection,
    (sql) => sql<{ lsn: string; at: string }[]>`
      SELECT pg_current_wal_flush_lsn()::text AS lsn,
        to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`,
  );
  if (!found) throw new Error('no position');
  return found;
}

describe('the history of the system database', () => {
  test('gives a moment while the server runs, and everything after it was stopped', async () => {
    const place = await home();
    const system = await started(place);
    await query(system.connection, (sql) => sql`CREATE TABLE kept (n int)`);
    const { paths } = await system.keepHistory(async () => 3_600);
    await eventually(async () => expect(await readBases(paths)).toHaveLength(1));
    await write(system, 1);
    const between = await flushed(system);
    await write(system, 2);
    await until(paths, (await flushed(system)).lsn);
    expect(await rowsAt(place, paths, { kind: 'time', at: between.at })).toEqual([1]);
    expect(await rowsAt(place, paths, { kind: 'lsn', lsn: between.lsn })).toEqual([1]);
    await write(system, 3);
    await system.stop();
    expect(await rowsAt(place, paths, null)).toEqual([1, 2, 3]);
  });

  test('continues over a restart and a kill of the server', async () => {
    const place = await home();
    const first = await started(place);
    await query(first.connection, (sql) => sql`CREATE TABLE kept (n int)`);
    const { paths } = await first.keepHistory(async () => 3_600);
    await eventually(async () => expect(await readBases(paths)).toHaveLength(1));
    await write(first, 1);
    await first.stop();
    const again = await started(place);
    const { paths: same } = await again.keepHistory(async () => 3_600);
    expect(same).toEqual(paths);
    await write(again, 2);
    const { pid } = (await findPostmaster(again.dataDirectory, place.config.uids?.systemDatabase ?? null)) ?? {
      pid: 0,
    };
    process.kill(pid, 'SIGKILL');
    await eventually(() => write(again, 3));
    await until(paths, (await flushed(again)).lsn);
    expect(await readBases(paths)).toHaveLength(1);
    expect((await readState(paths))?.gaps).toEqual([]);
    expect(await rowsAt(place, paths, null)).toEqual([1, 2, 3]);
  });

  test('says which moments are lost when the log was not kept, and goes on behind them', async () => {
    const place = await home();
    const first = await started(place);
    await query(first.connection, (sql) => sql`CREATE TABLE kept (n int)`);
    const { paths } = await first.keepHistory(async () => 3_600);
    await eventually(async () => expect(await readBases(paths)).toHaveLength(1));
    await first.stop();
    // Without a history, the slot is given up and the log goes.
    const without = await started(place, null);
    expect(await readdir(join(without.dataDirectory, 'pg_replslot'))).toEqual([]);
    await query(without.connection, async (sql) => {
      for (let n = 0; n < 3; n++) {
        await sql`INSERT INTO kept SELECT 7 FROM generate_series(1, 150000)`;
        await sql`TRUNCATE kept`;
      }
    });
    await without.stop();
    const { timeline, redo, checkpoint } = await readControlFile(without.dataDirectory);
    const wal = join(without.dataDirectory, 'pg_wal');
    const needed = segmentsOf(timeline, redo, checkpoint);
    const unneeded = (await readdir(wal)).filter((name) => isSegment(name) && !needed.has(name));
    for (const name of unneeded) await rm(join(wal, name));
    const again = await started(place);
    await again.keepHistory(async () => 3_600);
    await write(again, 9);
    await eventually(async () => expect((await readState(paths))?.gaps).toHaveLength(1));
    await until(paths, (await flushed(again)).lsn);
    expect(await rowsAt(place, paths, null)).toEqual([9]);
    const [gap] = (await readState(paths))?.gaps ?? [];
    expect(lsnBytes(gap?.until.lsn ?? '0/0')).toBeGreaterThan(lsnBytes(gap?.from.lsn ?? '0/0'));
  });
});
