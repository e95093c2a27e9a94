/** Databases of Postgres 17 move to a new project of Postgres 18, after a dry run that changes nothing. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyDatabase } from '../../src/copier/copy.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { catnapCommand, realRoles } from '../helpers/run-cli.ts';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
let program: Program;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  await catnap('projects', 'create', 'shop', '--pg-version', '17');
  await catnap('roles', 'create', 'books', '--project', 'shop');
  await catnap('databases', 'create', 'ledger', '--owner', 'books', '--project', 'shop');
  const shop = await uriOf('shop');
  await ask(shop, `CREATE ROLE clerk LOGIN PASSWORD 'clerk secret' CONNECTION LIMIT 7`);
  await ask(shop, 'CREATE ROLE readers NOLOGIN');
  await ask(shop, 'GRANT readers TO clerk');
  await ask(shop, `CREATE ROLE maker LOGIN PASSWORD 'maker secret' CREATEDB`);
  await ask(shop, `ALTER ROLE clerk SET statement_timeout = '7s'`);
  await ask(shop, `ALTER ROLE clerk IN DATABASE ledger SET work_mem = '9MB'`);
  await ask(shop, `ALTER DATABASE neondb SET work_mem = '7MB'`);
  await ask(shop, 'CREATE TABLE cats (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)');
  await ask(shop, `INSERT INTO cats (name) SELECT 'cat ' || i FROM generate_series(1, 1000) i`);
  await ask(shop, 'GRANT SELECT ON cats TO readers');
  const ledger = await uriOf('shop', 'ledger');
  await ask(ledger, 'CREATE TABLE entries AS SELECT i AS n FROM generate_series(1, 10) i');
  await ask(ledger, `ALTER ROLE books SET search_path = public, "$user"`);
});
afterAll(() => program.destroy());

async function catnap(...args: readonly string[]) {
  return catnapCommand(args, {
    url: `http://127.0.0.1:${program.httpPort}`,
    home: program.home.path,
    apiKey: await program.apiKey(),
    importDatabase: copyDatabase,
    roles: realRoles,
  });
}

async function uriOf(project: string, database = 'neondb'): Promise<string> {
  return (await catnap('connection-string', '--project', project, '--database', database)).out.trim();
}

const namesOf = async (...list: readonly string[]): Promise<string[]> =>
  JSON.parse((await catnap(...list, '--json')).out)
    .map(({ name }: { name: string }) => name)
    .sort();

const whole = { code: 0, err: '' };

function as(uri: string, username: string, password: string): string {
  return Object.assign(new URL(uri), { username, password }).href;
}

test('a dry run reports what would be copied, and leaves nothing behind', async () => {
  const tried = await catnap('upgrade', 'major', 'shop', '--to', '18', '--dry-run', '--json');
  expect(tried).toMatchObject(whole);
  expect(JSON.parse(tried.out)).toEqual([
    { database: 'neondb', outcome: 'copied', tables: 1, rows: 1000, method: 'copy', notes: [] },
    { database: 'ledger', outcome: 'copied', tables: 1, rows: 10, method: 'copy', notes: [] },
  ]);
  expect(await namesOf('projects', 'list')).toEqual(['shop']);
  expect(await namesOf('branches', 'list', '--project', 'shop')).toEqual(['main']);
});

test('a dry run says what would fail, for each database', async () => {
  const ledger = await uriOf('shop', 'ledger');
  const large = await ask(ledger, `SELECT lo_from_bytea(0, 'large')`);
  const tried = await catnap('upgrade', 'major', 'shop', '--to', '18', '--dry-run');
  expect(tried.code).toBe(1);
  expect(tried.out).toMatch(/neondb +copied +1 +1000/);
  expect(tried.out).toContain('Database ledger failed: the source has 1 large objects');
  const really = await catnap('upgrade', 'major', 'shop', '--to', '18');
  expect(really).toMatchObject({ code: 1, err: expect.stringContaining('the new project was removed again') });
  expect(await namesOf('projects', 'list')).toEqual(['shop']);
  await ask(ledger, `SELECT lo_unlink(${large})`);
});

test('the new project has the rows, the roles and their passwords, and the old one is as it was', async () => {
  const before = new URL(await uriOf('shop'));
  const done = await catnap('upgrade', 'major', 'shop', '--to', '18', '--name', 'shop18', '--json');
  expect(done).toMatchObject(whole);
  expect(await ask(before.href, 'SHOW server_version_num')).toMatch(/^17/);
  const after = new URL(JSON.parse(done.out).uri);
  expect([after.username, after.password]).toEqual([before.username, before.password]);
  expect(await ask(after.href, 'SHOW server_version_num')).toMatch(/^18/);
  expect(await ask(after.href, 'SELECT count(*) FROM cats')).toBe('1000');
  expect(await ask(after.href, `INSERT INTO cats (name) VALUES ('new') RETURNING id`)).toBe('1001');
  const [books, books18] = [new URL(await uriOf('shop', 'ledger')), new URL(await uriOf('shop18', 'ledger'))];
  expect([books18.username, books18.password]).toEqual(['books', books.password]);
  expect(await ask(books18.href, 'SELECT sum(n) FROM entries')).toBe('55');
  expect(await ask(books18.href, 'SHOW search_path')).toBe('public, "$user"');
  expect(await ask(after.href, 'SHOW work_mem')).toBe('7MB');
  // Made by SQL, and as limited as they were.
  const clerk = as(after.href, 'clerk', 'clerk secret');
  expect(await ask(clerk, 'SELECT count(*) FROM cats')).toBe('1001');
  expect(await ask(clerk, 'SHOW statement_timeout')).toBe('7s');
  expect(await ask(as(books18.href, 'clerk', 'clerk secret'), 'SHOW work_mem')).toBe('9MB');
  await expect(ask(clerk, 'DELETE FROM cats')).rejects.toThrow('permission denied');
  expect(await ask(as(after.href, 'maker', 'maker secret'), 'SELECT current_user')).toBe('maker');
  const attributes = `SELECT string_agg(concat_ws(' ', rolname, rolcanlogin, rolcreatedb, rolcreaterole, rolreplication,
    rolconnlimit), ', ' ORDER BY rolname) FROM pg_roles WHERE rolname IN ('clerk', 'readers', 'maker')`;
  expect(await ask(after.href, attributes)).toBe('clerk t f f f 7, maker t t f f -1, readers f f f f -1');
});

test('a project that stores no passwords keeps them, and is copied from a branch', async () => {
  const made = { name: 'secretive', pg_version: 17, store_passwords: false };
  const { body } = await program.api('POST', '/projects', { project: made });
  await program.settle(body.project.id);
  const before = body.connection_uris[0].connection_uri;
  await ask(before, 'CREATE TABLE cats AS SELECT i AS id FROM generate_series(1, 5) i');
  await ask(before, `CREATE ROLE clerk LOGIN PASSWORD 'clerk secret'`);
  await ask(before, 'GRANT SELECT ON cats TO clerk');
  await ask(before, `CREATE ROLE maker LOGIN PASSWORD 'maker secret' CREATEDB`);
  await ask(as(before, 'maker', 'maker secret'), 'CREATE DATABASE workshop');
  // What was made by SQL is in the API after a change there.
  await program.api('POST', `/projects/${body.project.id}/branches/${body.branch.id}/roles`, {
    role: { name: 'later' },
  });
  await program.settle(body.project.id);
  const words = ['upgrade', 'major', 'secretive', '--to', '18'];
  const follow = await catnap(...words, '--follow');
  expect(follow).toMatchObject({ code: 2, err: expect.stringContaining('needs the password of neondb_owner') });
  const tried = await catnap(...words, '--dry-run', '--json');
  expect(tried).toMatchObject(whole);
  expect(JSON.parse(tried.out)).toMatchObject([
    { database: 'neondb', outcome: 'copied', rows: 5, notes: [] },
    { database: 'workshop', outcome: 'copied', rows: 0, notes: [] },
  ]);
  const done = await catnap(...words, '--name', 'secretive18', '--json');
  expect(done).toMatchObject(whole);
  const { uri, id } = JSON.parse(done.out);
  expect(new URL(uri).password).toBe('');
  const after = as(uri, 'neondb_owner', decodeURIComponent(new URL(before).password));
  expect(await ask(after, 'SELECT count(*) FROM cats')).toBe('5');
  expect(await ask(as(uri, 'clerk', 'clerk secret'), 'SELECT count(*) FROM cats')).toBe('5');
  const workshop = as(uri, 'maker', 'maker secret').replace('/neondb', '/workshop');
  expect(await ask(workshop, 'SELECT datdba::regrole FROM pg_database WHERE datname = current_database()')).toBe(
    'maker',
  );
  expect((await program.api('GET', `/projects/${id}`)).body.project.store_passwords).toBe(false);
  // The source has the password that it had, and no branch is left of it.
  expect(await ask(before, 'SELECT count(*) FROM cats')).toBe('5');
  expect(await namesOf('branches', 'list', '--project', 'secretive')).toEqual(['main']);
});

test('with logical replication it follows the old project until Ctrl-C', async () => {
  const { id } = JSON.parse((await catnap('projects', 'get', 'shop', '--json')).out);
  const on = { project: { settings: { enable_logical_replication: true } } };
  await program.api('PATCH', `/projects/${id}`, on);
  const shop = await uriOf('shop');
  await eventually(async () => expect(await ask(shop, 'SHOW wal_level')).toBe('logical'));
  await ask(await uriOf('shop', 'ledger'), 'ALTER TABLE entries ADD PRIMARY KEY (n)');
  const env = { CATNAP_HOME: program.home.path, CATNAP_HTTP_PORT: String(program.httpPort) };
  const words = ['upgrade', 'major', 'shop', '--to', '18', '--name', 'followed', '--follow'];
  const child = spawn(process.execPath, [entry, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += String(bytes)));
  await eventually(() => expect(said).toContain('The new project has everything.'));
  await ask(shop, `UPDATE cats SET name = 'renamed' WHERE id <= 10`);
  await ask(await uriOf('shop', 'ledger'), 'INSERT INTO entries VALUES (11)');
  child.kill('SIGINT');
  expect([await ended, said]).toEqual([[0, null], expect.stringContaining('is as it was')]);
  expect(await ask(await uriOf('followed'), `SELECT count(*) FROM cats WHERE name = 'renamed'`)).toBe('10');
  expect(await ask(await uriOf('followed', 'ledger'), 'SELECT max(n) FROM entries')).toBe('11');
  expect(await ask(shop, `SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ 'catnap_import'`)).toBe('0');
});

test('only a newer major is taken', async () => {
  const older = await catnap('upgrade', 'major', 'shop', '--to', '17');
  expect(older).toMatchObject({ code: 2, err: 'catnap: project shop has Postgres 17; --to must be newer\n' });
  const unknown = await catnap('upgrade', 'major', 'shop', '--to', '99');
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('pg_version') });
  const both = await catnap('upgrade', 'major', 'shop', '--to', '18', '--dry-run', '--follow');
  expect(both).toMatchObject({ code: 2, err: expect.stringContaining('--follow') });
});
