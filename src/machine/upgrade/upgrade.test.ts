import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MigrationSet } from '../../db/migrate.ts';
import { judgeSchemas } from './check.ts';
import {
  type Release,
  readReleaseRecord,
  recordRelease,
  recordUndo,
  releaseRecordPath,
  requireNoNewerRelease,
} from './release-record.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'catnap-record-'));
});
afterEach(() => rm(home, { recursive: true }));

const release = (version: string, platform: number): Release => ({ version, commit: null, schemas: { platform } });
const versions = async () => (await readReleaseRecord(home))?.earlier.map(({ version }) => version);

describe('the record of a home', () => {
  test('keeps the programs before, the latest first, each once', async () => {
    await recordRelease(home, release('0.1.0', 25), null);
    expect(await versions()).toEqual([]);
    await recordRelease(home, release('0.1.0', 25), { platform: 25 });
    expect(await versions()).toEqual([]);
    await recordRelease(home, release('0.2.0', 27), { platform: 25 });
    await recordRelease(home, release('0.3.0', 27), { platform: 27 });
    expect(await versions()).toEqual(['0.2.0', '0.1.0']);
    await recordRelease(home, release('0.1.0', 25), { platform: 25 });
    expect(await versions()).toEqual(['0.3.0', '0.2.0']);
  });

  test('knows the schema of a program that has left no record', async () => {
    await recordRelease(home, release('0.1.0', 25), { platform: 19 });
    expect((await readReleaseRecord(home))?.earlier).toEqual([
      { version: null, commit: null, schemas: { platform: 19 } },
    ]);
    await rm(releaseRecordPath(home));
    await recordRelease(home, release('0.1.0', 25), { platform: 25 });
    expect(await versions()).toEqual([]);
  });

  test('is that of the earlier program again after an undo', async () => {
    for (const one of [release('0.1.0', 25), release('0.2.0', 26), release('0.3.0', 27)]) {
      await recordRelease(home, one, { platform: 25 });
    }
    const record = await readReleaseRecord(home);
    const target = record?.earlier[0];
    if (record === null || target === undefined) throw new Error('there is no record');
    await recordUndo(home, record, target);
    expect(await readReleaseRecord(home)).toMatchObject(release('0.2.0', 26));
    expect(await versions()).toEqual(['0.1.0']);
  });

  test('keeps an older program out, and no other one', async () => {
    await recordRelease(home, release('0.2.0', 27), null);
    await expect(requireNoNewerRelease(home, release('0.1.0', 25))).rejects.toThrow(
      /last used by Catnap 0\.2\.0, which is newer than this Catnap 0\.1\.0: start the newer one/,
    );
    await requireNoNewerRelease(home, release('0.1.9', 27));
    await requireNoNewerRelease(home, release('0.3.0', 28));
    await writeFile(releaseRecordPath(home), '{');
    await expect(requireNoNewerRelease(home, release('0.3.0', 28))).rejects.toThrow(
      'release.json is damaged: remove it',
    );
  });
});

describe('a check of the schemas', () => {
  const migration = (version: number, undo: string | null) => ({
    version,
    name: `000${version}`,
    sql: '',
    checksum: '',
    undo,
  });
  const sets: MigrationSet[] = [
    { name: 'platform', migrations: [migration(1, null), migration(2, null), migration(3, '')] },
  ];

  test('says what will be applied, and what there is no way back from', () => {
    expect(judgeSchemas({ platform: 3 }, sets)).toMatchObject({
      status: 'ok',
      detail: 'has the schema of this program',
    });
    expect(judgeSchemas({ platform: 2 }, sets)).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^migration 0003 will be applied; `catnap upgrade undo` goes back$/),
    });
    expect(judgeSchemas({ platform: 1 }, sets)).toMatchObject({
      status: 'warn',
      advice: expect.stringContaining('behind 0002'),
    });
    expect(judgeSchemas({ platform: 4 }, sets)).toMatchObject({
      status: 'fail',
      detail: 'has platform schema 4, this program knows up to 3',
    });
  });
});
