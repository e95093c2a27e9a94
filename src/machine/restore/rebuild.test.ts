/** One history in one store for all tests: each damages a copy of the store. */
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { makeTestStore, type TestStore } from '../../../test/helpers/stored-history.ts';
import { makeTempHome, type TempHome } from '../../../test/helpers/temp-home.ts';
import { newBackupKeyLine } from '../../backup/seal/backup-key.ts';
import { type HistoryPaths, readBases, readState } from '../../compute/local/host/history/files.ts';
import type { Layout } from '../../compute/local/host/home/layout.ts';
import { type Build, ensureBuild } from '../../compute/local/host/postgres/builds.ts';
import { createLogger } from '../../lib/log.ts';
import { segmentAt } from '../../lib/log-segments.ts';
import { lsnBytes, type Moment } from '../../lib/moments.ts';
import { ensureHome } from '../home.ts';
import { startSystemDatabase } from '../system-database.ts';
import { openBackup, takeInventory } from './backup.ts';
import { rebuild } from './rebuild.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const ref = { projectId: 'system', historyId: 'history-1' };
let place: TempHome;
let layout: Layout;
let build: Build;
let store: TestStore;
/** Committed one after the other; each is in a segment of its own. */
const moments: { at: string; lsn: string }[] = [];

beforeAll(async () => {
  place = await makeTempHome({ share: inject('sharedBuildsHome') });
  layout = await ensureHome(place.config);
  build = await ensureBuild(17, place.config, layout);
  const system = await startSystemDatabase({ ...place.config, backup: {} }, log);
  const sql = postgres({ ...system.connection, max: 1 });
  try {
    await sql`CREATE TABLE kept (n int)`;
    await sql`CREATE TABLE filler (t text)`;
    const { paths } = await system.keepHistory(async () => 3_600);
    await eventually(async () => expect(await readBases(paths)).toHaveLength(1));
    for (let n = 1; n <= 3; n++) {
      await sql`INSERT INTO kept VALUES (${n})`;
      moments.push(await position(sql));
      // Each row in a segment of its own, but less than the 64 MB after which there would be another base image.
      if (n < 3) await sql`INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 18000)`;
    }
    await copied(paths, (await position(sql)).lsn);
    store = await makeTestStore(await mkdtemp(join(place.path, 'store-')));
    await store.putHistory(ref, paths);
  } finally {
    await sql.end();
    await system.stop();
  }
});
afterAll(() => place.remove());

async function position(sql: postgres.Sql): Promise<{ at: string; lsn: string }> {
  const [found] = await sql<{ at: string; lsn: string }[]>`
    SELECT pg_current_wal_flush_lsn()::text AS lsn,
      to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`;
  if (!found) throw new Error('the server did not report its position');
  return found;
}

const copied = (paths: HistoryPaths, lsn: string) =>
  eventually(async () => {
    expect(lsnBytes((await readState(paths))?.copied?.lsn ?? '0/0')).toBeGreaterThanOrEqual(lsnBytes(lsn));
  });

/** Runs on a copy of the store, which `damage` may change. */
async function rebuilt(moment: Moment | null, damage: (folder: string) => Promise<void> = async () => undefined) {
  const work = await mkdtemp(join(place.path, 'work', 'test-'));
  try {
    const folder = join(work, 'store');
    await cp(store.settings.url.slice('file://'.length), folder, { recursive: true });
    await damage(join(folder, 'system', ref.historyId));
    const backup = await openBackup({ ...store.settings, url: `file://${folder}`, delaySeconds: 30 }, store.keyLine);
    const [history] = (await takeInventory(backup)).system;
    if (history === undefined) throw new Error('the store lists no history');
    const directory = join(work, 'made');
    await mkdir(directory, { mode: 0o711 });
    await chmod(work, 0o711);
    const rows: number[] = [];
    const result = await rebuild({
      backup,
      history,
      moment,
      directory,
      server: { build, layout, uid: place.config.uids?.systemDatabase ?? null },
      inspect: async (server) => {
        const sql = server.connect('postgres', 'catnap');
        rows.push(...(await sql<{ n: number }[]>`SELECT n FROM public.kept ORDER BY n`).map(({ n }) => n));
        await sql.end();
      },
    });
    return { ...result, rows };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const flipByte = async (path: string) => {
  const bytes = await readFile(path);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  await writeFile(path, bytes);
};

describe('data from a store', () => {
  test('is all there, or as of a moment', async () => {
    expect(await rebuilt(null)).toMatchObject({ rows: [1, 2, 3], lost: null, problems: [] });
    const { at, lsn } = moments[1] ?? { at: '', lsn: '' };
    expect(await rebuilt({ kind: 'time', at })).toMatchObject({ rows: [1, 2], lost: null, reachedMoment: true });
    expect((await rebuilt({ kind: 'lsn', lsn })).rows).toEqual([1, 2]);
  });

  test('of a moment before the history is refused with where it begins', async () => {
    const early: Moment = { kind: 'time', at: '2020-01-01T00:00:00Z' };
    await expect(rebuilt(early)).rejects.toThrow(/begins at \d{4}-/);
  });

  test.each([
    ['missing', (path: string) => rm(path), /no object .*\.gz\.enc/],
    ['changed', flipByte, /its proof does not match/],
  ])('ends before a segment that is %s, and says which moments are lost', async (_, damage, reason) => {
    const hole = segmentAt(1, moments[1]?.lsn ?? '');
    const found = await rebuilt(null, (folder) => damage(join(folder, 'log', `${hole}.gz.enc`)));
    expect(found.rows.length).toBeLessThan(3);
    expect(found.rows).toContain(1);
    expect(found.lost?.reason).toMatch(reason);
    expect(found.lost?.reason).toContain(hole);
    expect(lsnBytes(found.lost?.from.lsn ?? '0/0')).toBe(BigInt(Number.parseInt(hole.slice(16), 16)) * 2n ** 24n);
    const { lsn } = moments[0] ?? { lsn: '' };
    const before = await rebuilt({ kind: 'lsn', lsn }, (folder) => damage(join(folder, 'log', `${hole}.gz.enc`)));
    expect(before).toMatchObject({ rows: [1], lost: null });
  });

  test('without a base image fails, and names it', async () => {
    const noBase = async (folder: string) => {
      const bases = join(folder, 'bases');
      const files = (await readdir(bases, { recursive: true })).filter((name) => name.endsWith('.enc'));
      for (const name of files) await flipByte(join(bases, name));
    };
    await expect(rebuilt(null, noBase)).rejects.toThrow(/no base image can be used: .*bases\/.*proof does not match/);
  });

  test('with a changed document is not used', async () => {
    const changed = rebuilt(null, (folder) => flipByte(join(folder, 'history.json.gz.enc')));
    await expect(changed).rejects.toThrow(/the store lists no history/);
  });

  test('needs the right key, which is checked before anything is read', async () => {
    const settings = { ...store.settings, delaySeconds: 30 };
    await expect(openBackup(settings, newBackupKeyLine())).rejects.toThrow(/wrong backup key: it has the id/);
    await expect(openBackup(settings, 'secret')).rejects.toThrow(/one line of 43/);
    const empty = await mkdtemp(join(place.path, 'work', 'empty-'));
    const nowhere = openBackup({ ...settings, url: `file://${empty}` }, store.keyLine);
    await expect(nowhere).rejects.toThrow(/there is no backup at file/);
  });
});
