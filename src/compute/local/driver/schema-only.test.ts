import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId } from '../../../lib/ids.ts';
import { Bench, ownerAndDatabase, password } from '../../contract/bench.ts';
import type { ComputeObservation } from '../../interface/driver.ts';

/** In every value that the source holds; never in a name. */
const mark = 'XyZzY-treasure';
const bytes = Buffer.from(mark);

let subject: LocalSubject;
let b: Bench;
let source: ComputeObservation;
beforeAll(async () => {
  subject = await makeLocalSubject(17);
  b = new Bench(subject);
  source = await b.started();
  const second = { name: 'other db', renameFrom: null, ownerName: 'owner' };
  await b.driver.configure(b.ref, { ...ownerAndDatabase, databases: [...ownerAndDatabase.databases, second] });
  await fill();
});
afterAll(async () => {
  await b.driver.removeProject(b.ref);
  await subject.close();
});

async function fill(): Promise<void> {
  const statements = [
    `CREATE TABLE parents (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, wide text STORAGE EXTERNAL)`,
    `CREATE TABLE children (id int REFERENCES parents, tag text DEFAULT 'none')`,
    `CREATE TABLE parts (day int, what text) PARTITION BY RANGE (day)`,
    `CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)`,
    `CREATE UNLOGGED TABLE fast AS SELECT '${mark}' AS v`,
    `INSERT INTO parents (name, wide) SELECT '${mark} ' || n, repeat('${mark}', 500) FROM generate_series(1, 200) n`,
    `INSERT INTO children SELECT n, '${mark}' FROM generate_series(1, 200) n`,
    `INSERT INTO parts SELECT n, '${mark} part' FROM generate_series(0, 9) n`,
    `CREATE INDEX ON parents (lower(name))`,
    `CREATE MATERIALIZED VIEW seen AS SELECT name FROM parents`,
    `CREATE SEQUENCE counter START 7`,
    `SELECT setval('counter', 123456)`,
    `SELECT lo_from_bytea(0, '${mark} large'::bytea)`,
    `CREATE STATISTICS together ON id, name FROM parents`,
    `ANALYZE`,
    `DELETE FROM children WHERE id < 100`,
    // A value that old rows got without being rewritten.
    `CREATE FUNCTION told() RETURNS text STABLE LANGUAGE sql AS $$ SELECT 'XyZzY' || '-treasure' $$`,
    `ALTER TABLE children ADD COLUMN late text DEFAULT told()`,
    // Would run as a superuser, also under session_replication_role = replica.
    `CREATE TABLE trap (who text)`,
    `CREATE FUNCTION spring() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       EXECUTE 'ALTER ROLE owner SUPERUSER'; INSERT INTO trap VALUES (current_user); RETURN NULL; END $$`,
    `CREATE TRIGGER sprung BEFORE TRUNCATE ON parents EXECUTE FUNCTION spring()`,
    `ALTER TABLE parents ENABLE ALWAYS TRIGGER sprung`,
  ];
  for (const text of statements) await b.query(source, text);
  await b.query(source, `CREATE TABLE elsewhere AS SELECT '${mark}' AS v`, { database: 'other db' });
}

async function filesWith(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    if ((await readFile(path)).includes(bytes)) found.push(path.slice(directory.length + 1));
  }
  return found;
}

async function schemaOnly(): Promise<{ branchId: ReturnType<typeof newBranchId>; directory: string }> {
  const branchId = newBranchId();
  await b.cloneBranch(branchId);
  const directory = subject.layout.branch(b.ref.projectId, branchId);
  expect(await filesWith(directory)).not.toEqual([]);
  await b.driver.emptyBranch({ ...b.ref, branchId, pgVersion: 17, adminSecret: b.adminSecret });
  return { branchId, directory };
}

describe.each(['running', 'sleeping'])('a branch with the schema of a %s source', (state) => {
  let child: ComputeObservation;
  const one = async (text: string, login = {}) => Object.values((await b.query(child, text, login))?.[0] ?? {})[0];

  beforeAll(async () => {
    // A transaction that never ends leaves files that no catalog of the copy names.
    const address = source.address?.kind === 'unix' ? source.address.path : '';
    const login = { path: address, username: 'owner', password, database: 'app', max: 1, onnotice: () => undefined };
    const open = postgres(login);
    const held = await open.reserve();
    await held.unsafe(
      `BEGIN; CREATE TABLE unfinished AS SELECT repeat('${mark}', 1000) AS v FROM generate_series(1, 500)`,
    );
    await b.query(source, 'CHECKPOINT', { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' });
    if (state === 'sleeping') {
      await held.release();
      await open.end({ timeout: 1 });
      await b.driver.suspend(b.ref, 1);
    }
    const { branchId, directory } = await schemaOnly();
    if (state === 'running') {
      await held.release();
      await open.end({ timeout: 1 });
    }
    expect(await filesWith(directory)).toEqual([]);
    child = await b.start(1, { branchId, endpointId: newEndpointId() });
    expect(await filesWith(directory)).toEqual([]);
  });

  test('has every table and no row', async () => {
    for (const table of ['parents', 'children', 'parts', 'parts_1', 'fast', 'trap']) {
      expect([table, await one(`SELECT count(*)::int FROM ${table}`)]).toEqual([table, 0]);
    }
    expect(await one('SELECT count(*)::int FROM elsewhere', { database: 'other db' })).toBe(0);
    expect(await one("SELECT relispopulated FROM pg_class WHERE relname = 'seen'")).toBe(false);
    expect(await one('SELECT count(*)::int FROM pg_stats WHERE schemaname = $$public$$')).toBe(0);
    expect(await one('SELECT count(*)::int FROM pg_largeobject_metadata')).toBe(0);
  });

  test('has sequences that begin anew, and keys, indexes and triggers that work', async () => {
    expect(await one("SELECT nextval('counter')::int")).toBe(7);
    expect(await one("INSERT INTO parents (name) VALUES ('first') RETURNING id")).toBe(1);
    await expect(one('INSERT INTO children (id) VALUES (99)')).rejects.toMatchObject({ code: '23503' });
    expect(await one("SELECT id FROM parents WHERE lower(name) = 'first'")).toBe(1);
    await one('INSERT INTO children (id) VALUES (1)');
    expect(await one('SELECT late FROM children')).toBe(mark);
    await expect(one('TRUNCATE parents CASCADE')).rejects.toMatchObject({ code: '42501' });
    expect(await one("SELECT tgenabled FROM pg_trigger WHERE tgname = 'sprung'")).toBe('A');
  });

  test('made nobody a superuser and left its source alone', async () => {
    expect(await one("SELECT rolsuper FROM pg_roles WHERE rolname = 'owner'")).toBe(false);
    if (state === 'sleeping') source = await b.start(2);
    expect(await b.query(source, 'SELECT count(*)::int AS n FROM parents')).toEqual([{ n: 200 }]);
  });
});

test('a branch that was never used is empty already', async () => {
  const fresh = new Bench(subject);
  await fresh.createBranch();
  const branchId = newBranchId();
  await fresh.cloneBranch(branchId);
  await fresh.driver.emptyBranch({ ...fresh.ref, branchId, pgVersion: 17, adminSecret: fresh.adminSecret });
  expect(await fresh.start(1, { branchId })).toMatchObject({ state: 'running' });
  await fresh.driver.removeProject(fresh.ref);
});
