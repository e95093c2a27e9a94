/** Databases of Postgres 17 move to a new project of Postgres 18, after a dry run that changes nothing. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyDatabase } from '../../src/copier/copy.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { catnapCommand } from '../helpers/run-cli.ts';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
let program: Program;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  await catnap('projects', 'create', 'shop', '--pg-version', '17');
  await catnap('roles', 'create', 'books', '--project', 'shop');
  await catnap('databases', 'create', 'ledger', '--owner', 'books', '--project', 'shop');
  const shop = await uriOf('shop');
  await ask(shop, `CREATE ROLE clerk LOGIN PASSWORD 'clerk secret'`);
  await ask(shop, 'CREATE TABLE cats (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)');
  await ask(shop, `INSERT INTO cats (name) SELECT 'cat ' || i FROM generate_series(1, 1000) i`);
  await ask(shop, 'GRANT SELECT ON cats TO clerk');
  await ask(await uriOf('shop', 'ledger'), 'CREATE TABLE entries AS SELECT i AS n FROM generate_series(1, 10) i');
});
afterAll(() => program.destroy());

async function catnap(...args: readonly string[]) {
  return catnapCommand(args, {
    url: `http://127.0.0.1:${program.httpPort}`,
    home: program.home.path,
    apiKey: await program.apiKey(),
    importDatabase: copyDatabase,
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
  // Made by SQL, and as limited as it was.
  after.username = 'clerk';
  after.password = 'clerk secret';
  expect(await ask(after.href, 'SELECT count(*) FROM cats')).toBe('1001');
  const rights = `SELECT rolcreatedb OR rolcreaterole OR rolreplication FROM pg_roles WHERE rolname = 'clerk'`;
  expect(await ask(after.href, rights)).toBe('false');
  await expect(ask(after.href, 'DELETE FROM cats')).rejects.toThrow('permission denied');
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
