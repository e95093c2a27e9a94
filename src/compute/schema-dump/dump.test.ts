import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { Bench, ownerAndDatabase } from '../contract/bench.ts';
import type { ComputeObservation } from '../interface/driver.ts';
import { type DumpRequest, dumpSchema } from './dump.ts';
import { findPgDump } from './native-dump.ts';
import { dumpByWasm } from './wasm-dump.ts';
import { openWireSession } from './wire-session.ts';

describe.each([17, 18])('the schema of a database of Postgres %i', (pgVersion) => {
  let subject: LocalSubject;
  let b: Bench;
  let running: ComputeObservation;
  beforeAll(async () => {
    subject = await makeLocalSubject(pgVersion);
    b = new Bench(subject);
    running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(running, `CREATE TABLE "Größe" (id int PRIMARY KEY, at timestamptz DEFAULT now())`);
    await b.query(running, 'CREATE VIEW seen AS SELECT id FROM "Größe"');
    await b.query(running, `INSERT INTO "Größe" VALUES (4711)`);
    await b.query(
      running,
      'CREATE SCHEMA hidden; REVOKE ALL ON SCHEMA hidden FROM PUBLIC; CREATE TABLE hidden.t (n int)',
    );
  });
  afterAll(async () => {
    await b.driver.removeProject(b.ref);
    await subject.close();
  });
  const dump = (database = 'app', adminSecret = b.adminSecret, change: Partial<DumpRequest> = {}) => {
    if (running.address === null) throw new Error('it does not run');
    return dumpSchema({ address: running.address, adminSecret, database, pgVersion, programPath: '', ...change });
  };

  test('is SQL that makes everything and holds no row, twice the same', async () => {
    const sql = await dump();
    expect(sql).toContain('CREATE TABLE public."Größe" (');
    expect(sql).toContain('CREATE VIEW public.seen AS');
    expect(sql).toContain('CREATE TABLE hidden.t (');
    expect(sql).toContain('OWNER TO owner;');
    expect(sql).not.toContain('4711');
    expect(sql).not.toMatch(/restrict/);
    expect(await dump()).toBe(sql);
  });

  test('of a thousand tables comes too, and leaves no role behind', async () => {
    await b.query(
      running,
      `DO $$ BEGIN FOR n IN 1..1000 LOOP
      EXECUTE format('CREATE TABLE many_%s (a int, b text NOT NULL, c numeric(10,2))', n); END LOOP; END $$`,
    );
    expect((await dump()).match(/CREATE TABLE public\.many_/g)).toHaveLength(1000);
    const login = { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' };
    expect(await b.query(running, "SELECT rolname FROM pg_roles WHERE rolname LIKE 'catnap_j%'", login)).toEqual([]);
  });

  test('comes from a pg_dump of the machine where one fits, which logs in as a reader', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cn-dump-'));
    try {
      await writeFile(join(folder, 'pg_dump'), readerInPlaceOfPgDump(pgVersion), { mode: 0o755 });
      const said = JSON.parse(await dump('app', b.adminSecret, { programPath: folder }));
      expect(said).toEqual({
        args: ['--schema-only', '--no-password'],
        database: 'app',
        reads: '1',
        isSuperuser: 'off',
        cannotWrite: '42501',
      });
      expect(await dump('app', b.adminSecret, { binDirectory: folder })).toBe(JSON.stringify(said));
      await writeFile(join(folder, 'pg_dump'), '#!/bin/sh\necho "pg_dump (PostgreSQL) 99.0"; test "$1" = --version');
      await expect(dump('app', b.adminSecret, { programPath: folder })).rejects.toThrow('could not be read');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('without any pg_dump that fits, says what to install', async () => {
    const none = dump('app', b.adminSecret, { pgVersion: 98 });
    await expect(none).rejects.toMatchObject({
      kind: 'not_supported',
      message: expect.stringMatching(/install a pg_dump of Postgres 98 .* CATNAP_PG_BIN_98/),
    });
  });

  test('of a database that is not there, or with a wrong secret, fails and says so', async () => {
    await expect(dump('nowhere')).rejects.toThrow('the schema could not be read');
    await expect(dump('app', 'wrong')).rejects.toThrow('the schema could not be read');
  });

  async function limited(limits: { bytesMax: number; timeoutMs: number }, args?: readonly string[]) {
    const path = running.address?.kind === 'unix' ? running.address.path : '';
    const login = { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' };
    return dumpByWasm(await openWireSession(path, login, ''), limits, args);
  }

  test('fails with the words of pg_dump', async () => {
    const failed = limited({ bytesMax: 1e9, timeoutMs: 150_000 }, ['--schema-only', '--snapshot=none']);
    await expect(failed).rejects.toThrow(/^pg_dump: query failed: ERROR: +invalid snapshot identifier: "none"/);
  });

  test('is given up when it is too large or takes too long', async () => {
    await expect(limited({ bytesMax: 1_000, timeoutMs: 150_000 })).rejects.toThrow(/too large/);
    await expect(limited({ bytesMax: 1e9, timeoutMs: 1 })).rejects.toThrow(/too long/);
  });
});

/** Prints how it was called and what its login can do, guarded like the output of newer programs. */
const readerInPlaceOfPgDump = (major: number) => `#!${process.execPath}
  const pg = require(${JSON.stringify(createRequire(import.meta.url).resolve('pg'))});
  if (process.argv[2] === '--version') return console.log('pg_dump (PostgreSQL) ${major}.1');
  (async () => {
    const client = new pg.Client();
    await client.connect();
    const { rows: [seen] } = await client.query(\`SELECT current_database() AS database,
      (SELECT count(*) FROM hidden.t) + (SELECT count(*) FROM public."Größe") AS reads,
      current_setting('is_superuser') AS "isSuperuser"\`);
    const refused = await client.query('INSERT INTO hidden.t VALUES (1)').catch((error) => error.code);
    await client.end();
    console.log('\\\\restrict abc');
    process.stdout.write(JSON.stringify({ args: process.argv.slice(2), ...seen, cannotWrite: refused }));
  })();
`;

test('a pg_dump of the machine is used when it is new enough', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cn-dump-'));
  const program = join(folder, 'pg_dump');
  await writeFile(program, '#!/bin/sh\necho "pg_dump (PostgreSQL) 98.2"\n');
  await chmod(program, 0o755);
  expect(await findPgDump(98, { binDirectory: folder, programPath: '' })).toBe(program);
  expect(await findPgDump(98, { programPath: `/nowhere:${folder}` })).toBe(program);
  expect(await findPgDump(99, { binDirectory: folder, programPath: '' })).toBeNull();
  await rm(folder, { recursive: true });
});
