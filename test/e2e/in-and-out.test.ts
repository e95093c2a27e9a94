/** A database comes in from any Postgres, by `catnap import`, and goes out again as a plain one, by `catnap eject`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CliParts } from '../../src/cli/kit/parts.ts';
import { copyDatabase } from '../../src/copier/copy.ts';
import { checkEject, eject } from '../../src/machine/eject.ts';
import { eventually } from '../helpers/eventually.ts';
import { type PlainPostgres, startPlainPostgres } from '../helpers/plain-postgres.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { catnapCommand } from '../helpers/run-cli.ts';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
let program: Program;
let elsewhere: PlainPostgres;
let folder: string;
const isRoot = process.getuid?.() === 0;

beforeAll(async () => {
  program = await Program.create();
  [, elsewhere] = await Promise.all([program.start(), startPlainPostgres(17, { settings: { wal_level: 'logical' } })]);
  folder = await mkdtemp(join(tmpdir(), 'catnap-out-'));
  // As root the data becomes another user's.
  await chmod(folder, 0o711);
  await ask(elsewhere.url(), 'CREATE DATABASE shop');
  const url = elsewhere.url('shop');
  await ask(url, `CREATE ROLE clerk LOGIN PASSWORD 'clerk secret'`);
  await ask(url, 'CREATE TABLE cats (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)');
  await ask(url, `INSERT INTO cats (name) SELECT 'cat ' || i FROM generate_series(1, 1000) i`);
  await ask(url, 'ALTER TABLE cats OWNER TO clerk');
  await catnap('projects', 'create', 'shop', '--pg-version', '17');
});
afterAll(async () => {
  await Promise.all([program.destroy(), elsewhere.stop()]);
  await rm(folder, { recursive: true, force: true });
});

/** With the parts that the command has on this machine. */
async function catnapWith(changes: Partial<CliParts>, ...args: readonly string[]) {
  const { config } = program.home;
  return catnapCommand(args, {
    url: `http://127.0.0.1:${program.httpPort}`,
    home: program.home.path,
    apiKey: await program.apiKey(),
    importDatabase: copyDatabase,
    eject: { check: (place) => checkEject(config, place), copy: (request) => eject(config, request) },
    ...changes,
  });
}
const catnap = (...args: readonly string[]) => catnapWith({}, ...args);

test('a database of another server becomes that of a branch, and its roles log in with their passwords', async () => {
  const stdin = new PassThrough();
  stdin.end(`${elsewhere.url('shop')}\n`);
  const imported = await catnapWith({ stdin }, 'import', '-', '--json');
  expect({ ...imported, out: '' }).toEqual({ code: 0, out: '', err: '' });
  expect(JSON.parse(imported.out)).toMatchObject({ tables: 1, rows: 1000, method: 'replication', notes: [] });
  const { out } = await catnap('connection-string');
  const uri = new URL(out.trim());
  expect(await ask(uri.href, 'SELECT count(*) FROM cats')).toBe('1000');
  expect(await ask(uri.href, `SELECT tableowner FROM pg_tables WHERE tablename = 'cats'`)).toBe('clerk');
  uri.username = 'clerk';
  uri.password = 'clerk secret';
  expect(await ask(uri.href, `INSERT INTO cats (name) VALUES ('new') RETURNING id`)).toBe('1001');
});

test('the command follows the source until Ctrl-C, and has what was written up to then', async () => {
  await catnap('databases', 'create', 'followed');
  const env = { CATNAP_HOME: program.home.path, CATNAP_HTTP_PORT: String(program.httpPort) };
  const words = ['import', elsewhere.url('shop'), '--database', 'followed', '--follow'];
  const child = spawn(process.execPath, [entry, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += String(bytes)));
  await eventually(() => expect(said).toContain('The branch has everything.'));
  await ask(elsewhere.url('shop'), `UPDATE cats SET name = 'renamed' WHERE id <= 10`);
  child.kill('SIGINT');
  expect([await ended, said]).toEqual([[0, null], expect.stringMatching(/method: +replication/)]);
  const { out } = await catnap('connection-string', '--database', 'followed');
  expect(await ask(out.trim(), `SELECT count(*) FROM cats WHERE name = 'renamed'`)).toBe('10');
});

test('what cannot be imported is refused with a sentence', async () => {
  const again = await catnap('import', elsewhere.url('shop'));
  expect(again).toMatchObject({ code: 1, err: expect.stringMatching(/^catnap: the target is not empty, it has cats/) });
  const noUrl = await catnap('import', 'shop');
  expect(noUrl).toMatchObject({ code: 2, err: expect.stringContaining('must have the form postgresql://') });
  const both = await catnap('import', elsewhere.url('shop'), '--follow', '--method', 'copy');
  expect(both).toMatchObject({ code: 2, err: expect.stringContaining('--follow') });
  const method = await catnap('import', elsewhere.url('shop'), '--method', 'pipe');
  expect(method).toMatchObject({ code: 2, err: expect.stringContaining('auto, replication, copy') });
});

test('a branch becomes a data directory that a plain Postgres runs, with the same passwords', async () => {
  const { out } = await catnap('connection-string');
  const inside = new URL(out.trim());
  const target = join(folder, 'data');
  const as = isRoot ? ['--user', 'nobody'] : [];
  const ejected = await catnap('eject', 'main', target, '--json', ...as);
  expect({ ...ejected, out: '' }).toEqual({ code: 0, out: '', err: '' });
  const made = JSON.parse(ejected.out);
  expect(made).toMatchObject({ folder: target, superuser: 'ejected_admin' });
  // The branch that it was made from is gone again, and the source has gone on.
  expect(JSON.parse((await catnap('branches', 'list', '--json')).out)).toHaveLength(1);
  expect(await ask(inside.href, 'SELECT count(*) FROM cats')).toBe('1001');

  const outside = await startPlainPostgres(17, {
    dataDirectory: target,
    login: { name: made.superuser, password: made.password },
  });
  try {
    const database = inside.pathname.slice(1);
    const owner = { name: inside.username, password: decodeURIComponent(inside.password) };
    expect(await ask(outside.url(database, owner), 'SELECT count(*) FROM cats')).toBe('1001');
    const clerk = { name: 'clerk', password: 'clerk secret' };
    expect(await ask(outside.url(database, clerk), `DELETE FROM cats RETURNING 'it is theirs'`)).toBe('it is theirs');
    const logins = `SELECT string_agg(rolname, ',') FROM pg_roles WHERE rolname ~ '^catnap' AND rolcanlogin`;
    expect(await ask(outside.url(database), logins)).toBe('null');
    expect(await ask(outside.url(database), 'SELECT count(*) FROM pg_replication_slots')).toBe('0');
  } finally {
    await outside.stop();
  }
});

test('eject refuses what it cannot do before it makes anything', async () => {
  const as = isRoot ? ['--user', 'nobody'] : [];
  const full = await catnap('eject', 'main', '/etc', ...as);
  expect([full.code, full.err]).toEqual([1, 'catnap: /etc is not empty: name a folder that is new or empty\n']);
  const place = join(folder, 'none');
  const stranger = await catnap('eject', 'main', place, '--user', isRoot ? 'nobody-at-all' : 'nobody');
  expect(stranger).toMatchObject({ code: 1, err: expect.stringMatching(/^catnap: --user /) });
  const config = { ...program.home.config, home: folder };
  const away = {
    check: (at: Parameters<CliParts['eject']['check']>[0]) => checkEject(config, at),
    copy: () => Promise.reject(),
  };
  const other = await catnapWith({ eject: away }, 'eject', 'main', place, ...as);
  expect(other).toMatchObject({ code: 1, err: expect.stringContaining('run eject on the machine of its Catnap') });
  const cluster = { ...program.home.config, driver: 'kubernetes' as const };
  const inCluster = { ...away, check: (at: Parameters<CliParts['eject']['check']>[0]) => checkEject(cluster, at) };
  const refused = await catnapWith({ eject: inCluster }, 'eject', 'main', place, ...as);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('processes of this machine alone') });
  expect(JSON.parse((await catnap('branches', 'list', '--json')).out)).toHaveLength(1);
});
