/**
 * A project moves from one Catnap to another and back, by `catnap move`, while rows keep arriving.
 * CATNAP_TEST_FIGURES=1 prints how long the cut-over took.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MoveParts } from '../../src/cli/kit/copy-parts.ts';
import { forgetCopy } from '../../src/copier/copy.ts';
import * as moving from '../../src/copier/moving.ts';
import { eventually, thinkTime } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { catnapCommand, realRoles } from '../helpers/run-cli.ts';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
const real: MoveParts = {
  inspect: moving.inspectDatabase,
  copy: moving.copyForMove,
  forget: forgetCopy,
  abandon: moving.abandonCopy,
};
let here: Program;
let there: Program;
let folder: string;

beforeAll(async () => {
  [here, there] = await Promise.all([Program.create(), Program.create()]);
  await Promise.all([here.start(), there.start()]);
  folder = await mkdtemp(join(tmpdir(), 'catnap-move-'));
});
afterAll(async () => {
  await Promise.all([here.destroy(), there.destroy()]);
  await rm(folder, { recursive: true, force: true });
});

const urlOf = (program: Program) => `http://127.0.0.1:${program.httpPort}`;

/** In this process, at one of the two. */
async function catnapAt(program: Program, args: readonly string[], move: MoveParts = real) {
  const stdin = new PassThrough();
  stdin.end();
  return catnapCommand(args, {
    url: urlOf(program),
    apiKey: await program.apiKey(),
    folder,
    stdin,
    roles: realRoles,
    move,
  });
}

async function moveWords(project: string, to: Program, ...more: readonly string[]): Promise<string[]> {
  return ['move', project, '--to', urlOf(to), '--to-api-key', await to.apiKey(), '--state', folder, ...more];
}

interface Made {
  readonly id: string;
  readonly uri: string;
  readonly branch: string;
}

async function makeProject(program: Program, name: string, settings: object = {}): Promise<Made> {
  const { body } = await program.api('POST', '/projects', { project: { name, settings } });
  await program.settle(body.project.id);
  const branch = `/projects/${body.project.id}/branches/${body.branch.id}`;
  return { id: body.project.id, uri: body.connection_uris[0].connection_uri, branch };
}

const logical = { enable_logical_replication: true };

function as(uri: string, username: string, password: string, database?: string): string {
  const url = new URL(uri);
  url.username = username;
  url.password = password;
  if (database !== undefined) url.pathname = `/${database}`;
  return url.href;
}

/** Inserts one row after the other until the database is closed to it; returns the numbers that were confirmed. */
function writeUntilClosed(uri: string): { readonly confirmed: number[]; readonly ended: Promise<string> } {
  const confirmed: number[] = [];
  const write = async () => {
    const client = new pg.Client({ connectionString: uri });
    client.on('error', () => {});
    await client.connect();
    try {
      for (let n = confirmed.length + 1; ; n += 1) {
        await client.query('INSERT INTO ticks (n) VALUES ($1)', [n]);
        confirmed.push(n);
        await thinkTime(5);
      }
    } finally {
      await client.end().catch(() => {});
    }
  };
  return { confirmed, ended: write().catch((error: Error) => error.message) };
}

/** As a process of its own, which can be killed. */
function startCommand(program: Program, words: readonly string[]) {
  const env = { CATNAP_HOME: program.home.path, CATNAP_HTTP_PORT: String(program.httpPort), PATH: process.env.PATH };
  const child = spawn(process.execPath, [entry, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const command = { child, said: '', ended: once(child, 'exit') };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (command.said += String(bytes)));
  return command;
}

const numbersIn = async (uri: string) =>
  (await ask(uri, `SELECT coalesce(string_agg(n::text, ',' ORDER BY n), '') FROM ticks`)).split(',').map(Number);

test('rows arrive during the move, the command is killed and called again: none is lost, none is doubled', async () => {
  const made = await makeProject(here, 'shop', logical);
  await ask(made.uri, 'CREATE TABLE ticks (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int UNIQUE)');
  await ask(made.uri, 'CREATE TABLE cats (id int PRIMARY KEY, name text)');
  await ask(made.uri, `INSERT INTO cats SELECT i, 'cat ' || i FROM generate_series(1, 20000) i`);
  await ask(made.uri, `CREATE ROLE clerk LOGIN PASSWORD 'clerk secret' CONNECTION LIMIT 7`);
  await ask(made.uri, 'GRANT SELECT ON cats TO clerk');
  await ask(made.uri, `ALTER DATABASE neondb SET work_mem = '7MB'`);
  const reader = await here.api('POST', `${made.branch}/roles`, { role: { name: 'reader' } });
  await here.settle(made.id);
  await here.api('POST', `${made.branch}/databases`, { database: { name: 'orders', owner_name: 'reader' } });
  await here.settle(made.id);
  const { password: readerPassword } = reader.body.role;
  const orders = as(made.uri, 'reader', readerPassword, 'orders');
  await ask(orders, 'CREATE TABLE orders (id int PRIMARY KEY)');
  await ask(orders, 'INSERT INTO orders SELECT generate_series(1, 100)');

  const writer = writeUntilClosed(made.uri);
  const first = startCommand(here, await moveWords('shop', there, '--follow'));
  await eventually(() => expect(first.said).toContain('The new project has everything.'));
  first.child.kill('SIGKILL');
  await first.ended;
  const before = writer.confirmed.length;
  await eventually(() => expect(writer.confirmed.length).toBeGreaterThan(before + 10));

  const second = await catnapAt(here, [...(await moveWords('shop', there)), '--json']);
  expect({ ...second, out: '' }).toEqual({ code: 0, out: '', err: '' });
  const moved = JSON.parse(second.out);
  expect(moved).toMatchObject({ method: 'replication', tables: 3, closed_as: { neondb: 'neondb_moved' } });
  expect(moved.cut_over_ms).toBeGreaterThan(0);
  expect(await writer.ended).toMatch(/terminat|does not exist|connection error/i);
  if (process.env.CATNAP_TEST_FIGURES) {
    process.stdout.write(`cut-over: ${moved.cut_over_ms} ms, ${writer.confirmed.length} rows arrived meanwhile\n`);
  }
  const { new: uri, old } = moved.connections.find((one: { database: string }) => one.database === 'neondb');
  expect([new URL(uri).username, new URL(uri).password]).toEqual([
    new URL(made.uri).username,
    new URL(made.uri).password,
  ]);
  expect(new URL(old).pathname).toBe('/neondb');
  await expect(ask(made.uri, 'SELECT 1')).rejects.toThrow('does not exist');
  const arrived = await numbersIn(uri);
  expect(arrived.slice(0, writer.confirmed.length)).toEqual(writer.confirmed);
  // The last one may have been committed without an answer.
  expect(arrived.length - writer.confirmed.length).toBeLessThanOrEqual(1);
  const closed = as(
    made.uri,
    new URL(made.uri).username,
    decodeURIComponent(new URL(made.uri).password),
    'neondb_moved',
  );
  expect(await numbersIn(closed)).toEqual(arrived);
  expect(await ask(closed, `SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical'`)).toBe('0');
  expect(await ask(closed, 'SELECT count(*) FROM pg_publication')).toBe('0');

  expect(await ask(as(uri, 'clerk', 'clerk secret'), 'SELECT count(*) FROM cats')).toBe('20000');
  expect(await ask(uri, `SELECT rolconnlimit FROM pg_roles WHERE rolname = 'clerk'`)).toBe('7');
  expect(await ask(as(uri, 'reader', readerPassword, 'orders'), 'SELECT count(*) FROM orders')).toBe('100');
  expect(await ask(uri, 'SHOW work_mem')).toBe('7MB');
  expect(await ask(uri, `INSERT INTO ticks (n) VALUES (0) RETURNING id > ${arrived.length - 1}`)).toBe('true');
  expect(await ask(uri, `SELECT to_regnamespace('catnap_import') IS NULL`)).toBe('true');

  const again = await catnapAt(here, [...(await moveWords('shop', there)), '--json']);
  expect([again.code, JSON.parse(again.out)]).toMatchObject([0, { cut_over_ms: moved.cut_over_ms }]);

  // And back again, to a new project there.
  const back = await catnapAt(there, [...(await moveWords(moved.project, here)), '--json']);
  expect({ ...back, out: '' }).toEqual({ code: 0, out: '', err: '' });
  const returned = JSON.parse(back.out);
  const home = returned.connections.find((one: { database: string }) => one.database === 'neondb').new;
  expect(await numbersIn(home)).toEqual([0, ...arrived]);
  expect(new URL(home).password).toBe(new URL(made.uri).password);
  expect(await ask(as(home, 'clerk', 'clerk secret'), 'SELECT count(*) FROM cats')).toBe('20000');
});

test('a kill between the end of the copy and the state file is made good by the next run', async () => {
  const made = await makeProject(here, 'sudden', logical);
  await ask(made.uri, 'CREATE TABLE ticks (n int PRIMARY KEY)');
  await ask(made.uri, 'INSERT INTO ticks SELECT generate_series(1, 50)');
  const dying: MoveParts = {
    ...real,
    copy: async (request, report) => {
      const done = await real.copy(request, report);
      if (done !== null) throw new Error('killed');
      return done;
    },
  };
  const words = [...(await moveWords('sudden', there)), '--json'];
  expect(await catnapAt(here, words, dying)).toMatchObject({ code: 1, err: 'catnap: killed\n' });
  const moved = await catnapAt(here, words);
  expect(moved).toMatchObject({ code: 0, err: '' });
  const { connections, rows } = JSON.parse(moved.out);
  expect([rows, await ask(connections[0].new, 'SELECT count(*) FROM ticks')]).toEqual([50, '50']);
});

test('by copy, the databases are closed first, and passwords that change meanwhile are taken', async () => {
  const made = await makeProject(here, 'plain');
  await ask(made.uri, 'CREATE TABLE ticks (n int)');
  await ask(made.uri, `CREATE ROLE clerk LOGIN CREATEDB PASSWORD 'clerk secret'`);
  await ask(made.uri, 'CREATE ROLE readers NOLOGIN');
  await ask(made.uri, 'GRANT readers TO clerk WITH INHERIT FALSE');
  const writer = writeUntilClosed(made.uri);
  await eventually(() => expect(writer.confirmed.length).toBeGreaterThan(10));
  const changing: MoveParts = {
    ...real,
    copy: async (request, report) => {
      await ask(request.source, `ALTER ROLE clerk PASSWORD 'newer secret'`);
      return real.copy(request, report);
    },
  };
  const words = [...(await moveWords('plain', there, '--method', 'copy')), '--json'];
  const moved = await catnapAt(here, words, changing);
  expect(moved).toMatchObject({ code: 0, err: '' });
  await writer.ended;
  const { connections, method } = JSON.parse(moved.out);
  const clerk = as(connections[0].new, 'clerk', 'newer secret');
  const rights = `rolcreatedb, rolcreaterole, pg_has_role('readers', 'MEMBER'), pg_has_role('readers', 'USAGE')`;
  const asked = `SELECT concat_ws(' ', ${rights}) FROM pg_roles WHERE rolname = current_user`;
  expect(await ask(clerk, asked)).toBe('t f t f');
  const arrived = await numbersIn(connections[0].new);
  expect([method, arrived.slice(0, writer.confirmed.length)]).toEqual(['copy', writer.confirmed]);
});

test('a dry run says what is not moved and what stands against it, and changes nothing', async () => {
  const made = await makeProject(here, 'dry');
  await here.api('POST', `/projects/${made.id}/branches`, { branch: { name: 'side' } });
  await here.settle(made.id);
  const files = await readdir(folder);
  const off = await catnapAt(here, await moveWords('dry', there, '--dry-run'));
  expect(off.code).toBe(1);
  expect(off.out).toContain('Refused: the project has logical replication off');
  expect(off.out).toContain('Not moved: branches: side.');
  await here.api('PATCH', `/projects/${made.id}`, { project: { settings: logical } });
  await here.settle(made.id);
  await ask(made.uri, 'CREATE TABLE loose (n int)');
  const keyless = await catnapAt(here, await moveWords('dry', there, '--dry-run'));
  expect([keyless.code, keyless.out]).toEqual([1, expect.stringContaining('table loose has no primary key')]);
  await ask(made.uri, 'ALTER TABLE loose ADD PRIMARY KEY (n)');
  const { body } = await there.api('POST', '/api_keys', { key_name: 'looks', scope: 'read_only' });
  const words = ['move', 'dry', '--to', urlOf(there), '--to-api-key', body.key];
  const refused = await catnapAt(here, words);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('must be one of scope full') });
  const good = await catnapAt(here, await moveWords('dry', there, '--dry-run'));
  expect([good.code, good.out]).toEqual([0, expect.stringContaining('Nothing stands against the move.')]);
  expect(await readdir(folder)).toEqual(files);
  expect(await ask(made.uri, 'SELECT count(*) FROM loose')).toBe('0');
});

test('a move that is given up leaves the source as it was, and nothing at the target', async () => {
  const made = await makeProject(here, 'undecided', logical);
  await ask(made.uri, 'CREATE TABLE ticks (n int PRIMARY KEY)');
  const failing: MoveParts = {
    ...real,
    // Once the databases are closed.
    copy: (request, report) =>
      request.untilPause === undefined ? Promise.reject(new Error('no')) : real.copy(request, report),
  };
  expect((await catnapAt(here, await moveWords('undecided', there), failing)).code).toBe(1);
  await expect(ask(made.uri, 'SELECT 1')).rejects.toThrow('does not exist');
  const state = JSON.parse(await readFile(join(folder, `catnap-move-${made.id}.json`), 'utf8'));
  expect(JSON.stringify(state)).not.toContain('npg_');
  expect((await catnapAt(here, await moveWords('undecided', there, '--give-up'))).code).toBe(0);
  expect(await ask(made.uri, `SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical'`)).toBe('0');
  expect((await there.api('GET', `/projects/${state.to.project}`)).status).toBe(404);
  expect(await readdir(folder)).not.toContain(`catnap-move-${made.id}.json`);
});
