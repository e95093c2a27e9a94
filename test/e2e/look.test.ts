/** A look into the past through the front door: rows as of then, beside those of now, until nobody looks any more. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { Client, neon, neonConfig } from '@neondatabase/serverless';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../helpers/eventually.ts';
import { type ForeignCli, foreignClis, hasForeignClis, runCli } from '../helpers/foreign.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const run = promisify(execFile);
const hasPsql = (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'psql')));

let program: Program;
let projectId: string;
let branchId: string;
let uri: string;
/** Between the two rows. */
let moment: { readonly at: string; readonly lsn: string };

const withOptions = (text: string, of = uri) => {
  const url = new URL(of);
  url.searchParams.set('options', [url.searchParams.get('options') ?? '', text].join(' ').trim());
  // A plus is a space to URLs, and a plus to libpq.
  return url.href.replaceAll('+', '%20');
};
const byTime = () => withOptions(`neon_timestamp:${moment.at}`);
const lookPids = () => program.serverPids('catnap.endpoint=look-');
const namesOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);

beforeAll(async () => {
  program = await Program.create({ CATNAP_LOOK_IDLE_SECONDS: '5', CATNAP_SUSPEND_MIN_SECONDS: '1' });
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'looks' } });
  projectId = body.project.id;
  branchId = body.branch.id;
  uri = body.connection_uris[0].connection_uri;
  await program.settle(projectId);
  await ask(uri, 'create table t (name text)');
  // The history begins with a base image, a few seconds after the branch.
  await eventually(async () => {
    const { body: made } = await program.api(
      'GET',
      `/projects/${projectId}/branches/${branchId}/schema?db_name=neondb`,
    );
    expect(made.sql).toContain('public.t');
    await ask(withOptions(`neon_timestamp:${new Date().toISOString()}`), 'select 1');
  });
  await ask(uri, "insert into t values ('old')");
  const format = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
  moment = {
    at: await ask(uri, `select to_char(clock_timestamp() at time zone 'UTC', '${format}')`),
    lsn: await ask(uri, 'select pg_current_wal_insert_lsn()'),
  };
  await ask(uri, "insert into t values ('new')");
}, 240_000);
afterAll(() => program.destroy());

it('serves the rows of then, beside those of now, and takes no writes', async () => {
  const startedAt = performance.now();
  expect(await ask(byTime(), "select string_agg(name, ' ') from t")).toBe('old');
  const firstMs = performance.now() - startedAt;
  const again = performance.now();
  expect(await ask(byTime(), "select string_agg(name, ' ') from t")).toBe('old');
  const times = { first: Math.round(firstMs), again: Math.round(performance.now() - again) };
  process.stdout.write(`first row of a look: ${times.first} ms, of one that is open: ${times.again} ms\n`);
  expect(await ask(uri, "select string_agg(name, ' ') from t")).toBe('old new');
  expect(await ask(withOptions(`neon_lsn:${moment.lsn}`), "select string_agg(name, ' ') from t")).toBe('old');
  const client = new pg.Client({ connectionString: byTime() });
  await client.connect();
  try {
    await expect(client.query("insert into t values ('mine')")).rejects.toThrow('in a read-only transaction');
    await client.query('set default_transaction_read_only = off');
    await expect(client.query("insert into t values ('mine')")).rejects.toThrow('in a read-only transaction');
  } finally {
    await client.end();
  }
  const { branches } = (await program.api('GET', `/projects/${projectId}/branches`)).body;
  const { endpoints } = (await program.api('GET', `/projects/${projectId}/endpoints`)).body;
  expect([namesOf(branches), endpoints.length]).toEqual([[branchId], 1]);
}, 120_000);

it.skipIf(!hasPsql)(
  'answers psql, on both hosts, and refuses a moment that it does not have',
  async () => {
    const psql = (string: string) => run('psql', [string, '-Atc', 'select name from t']);
    expect((await psql(byTime())).stdout).toBe('old\n');
    const pooled = byTime().replace(/ep-[a-z0-9-]+/g, '$&-pooler');
    expect((await psql(pooled)).stdout).toBe('old\n');
    await expect(psql(withOptions('neon_timestamp:2020-01-01T00:00:00Z'))).rejects.toThrow(
      /neon_timestamp is outside the history of the branch main, which reaches from .* to /,
    );
    await expect(psql(withOptions('neon_lsn:here'))).rejects.toThrow('neon_lsn must be a position in the log');
  },
  120_000,
);

it('answers SQL over HTTP, and over a WebSocket', async () => {
  neonConfig.fetchEndpoint = `http://127.0.0.1:${program.httpPort}/sql`;
  const sql = neon(byTime());
  expect(await sql`select name from t`).toEqual([{ name: 'old' }]);
  const client = new Client(byTime());
  const wsProxy = `127.0.0.1:${program.httpPort}/v2`;
  Object.assign(client.neonConfig, { webSocketConstructor: WebSocket, wsProxy, useSecureWebSocket: false });
  await client.connect();
  try {
    expect((await client.query('select name from t')).rows).toEqual([{ name: 'old' }]);
  } finally {
    await client.end();
  }
}, 60_000);

it.skipIf(process.getuid?.() !== 0)(
  'runs under the uid of its project',
  async () => {
    const { uid } = await stat(join(program.home.path, 'projects', projectId, 'branches', branchId, 'pgdata'));
    expect(uid).toBeGreaterThan(0);
    const client = new pg.Client({ connectionString: byTime() });
    await client.connect();
    try {
      await client.query('begin');
      const { rows } = await client.query('select pg_backend_pid() as pid');
      expect((await stat(`/proc/${rows[0].pid}`)).uid).toBe(uid);
    } finally {
      await client.end();
    }
  },
  60_000,
);

it('serves those of Postgres 18 as well', async () => {
  const { body } = await program.api('POST', '/projects', { project: { name: 'looks at 18', pg_version: 18 } });
  const own: string = body.connection_uris[0].connection_uri;
  await ask(own, "create table t as select 'old' as name");
  const lsn = await ask(own, 'select pg_current_wal_insert_lsn()');
  await ask(own, "insert into t values ('new')");
  const then = withOptions(`neon_lsn:${lsn}`, own);
  await eventually(async () => {
    expect(await ask(then, "select string_agg(name, ' ') || current_setting('server_version_num') from t")).toMatch(
      /^old18/,
    );
  });
  expect(await ask(own, "select string_agg(name, ' ') from t")).toBe('old new');
});

it('lets the password of now in, and no role that came later', async () => {
  await ask(uri, "create role late login password 'npg_late_enough'");
  const late = new URL(byTime());
  Object.assign(late, { username: 'late', password: 'npg_late_enough' });
  await expect(ask(late.href, 'select 1')).rejects.toThrow('role "late" did not exist at that moment');
  const { username } = new URL(uri);
  await ask(uri, `alter role ${username} password 'npg_changed_since'`);
  const changed = new URL(byTime());
  changed.password = 'npg_changed_since';
  // The looks of the tests before may still be open, as many as a project may have.
  await eventually(async () => expect(await ask(changed.href, 'select name from t')).toBe('old'));
  uri = uri.replace(/:[^:@/]+@/, ':npg_changed_since@');
}, 120_000);

it.skipIf(!hasForeignClis || !hasPsql)(
  'opens what neonctl prints for branch@moment',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cn-look-'));
    const options = { apiHost: `http://127.0.0.1:${program.httpPort}/api/v2`, apiKey: await program.apiKey(), folder };
    // The command line asks for the stored password, which SQL has replaced.
    const { username } = new URL(uri);
    const roles = `/projects/${projectId}/branches/${branchId}/roles/${username}`;
    expect((await program.api('POST', `${roles}/reset_password`)).status).toBe(200);
    await program.settle(projectId);
    try {
      const words = ['connection-string', `main@${moment.at}`, '--project-id', projectId, '--role-name', username];
      const printed = (await runCli(foreignClis.at(-1) as ForeignCli, options, words)).trim();
      expect(new URL(printed)).toMatchObject({ host: expect.stringMatching(`^${branchId}`) });
      const url = new URL(printed);
      url.port = String(program.pgPort);
      const env = { ...process.env, PGHOSTADDR: '127.0.0.1' };
      expect((await run('psql', [url.href, '-Atc', 'select name from t'], { env })).stdout).toBe('old\n');
      uri = uri.replace(/:[^:@/]+@/, `:${url.password}@`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  120_000,
);

it('goes away by itself, after a kill too', async () => {
  await ask(withOptions(`neon_lsn:${moment.lsn}`), 'select 1');
  expect((await lookPids()).length).toBeGreaterThan(0);
  // The schema of a moment is read from a server of its own, which must not outlive the kill either.
  const folders = () => readdir(join(program.home.path, 'projects', projectId, 'branches'));
  const before = new Set(await folders());
  const path = `/projects/${projectId}/branches/${branchId}/schema?db_name=neondb&timestamp=${moment.at}`;
  const reading = program.api('GET', path).catch(() => null);
  await eventually(async () => expect((await folders()).some((name) => !before.has(name))).toBe(true));
  await program.killHard();
  await reading;
  await program.start();
  await eventually(async () => expect(await lookPids()).toEqual([]));
  await program.settle(projectId);
  await eventually(async () => expect(await folders()).toEqual([branchId]));
  expect(await program.serverPids(`/${projectId}/branches/.`)).toEqual([]);
  expect(await ask(uri, 'select count(*) from t')).toBe('2');
});
