/** The past of a branch through the front door: real servers, real connection strings, and what a person would try. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { type ForeignCli, foreignClis, hasForeignClis, runCli } from '../helpers/foreign.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let projectId: string;
let rootId: string;
let endpointId: string;
let uri: string;

const branches = () => `/projects/${projectId}/branches`;
const uriOf = (endpoint: string) => uri.replaceAll(endpointId, endpoint);
/** The time and the position of the server itself, between two commits. */
const moment = async (of = uri) => ({
  at: await ask(of, `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`),
  lsn: await ask(of, 'select pg_current_wal_insert_lsn()'),
});
const historyOf = async (id: string) => (await program.api('GET', `${branches()}/${id}/history`)).body.history;

async function branchFrom(branch: object) {
  const body = { branch, endpoints: [{ type: 'read_write' }] };
  const reply = await program.api('POST', branches(), body);
  expect([reply.status, reply.body.message]).toEqual([201, undefined]);
  await program.settle(projectId);
  return { id: reply.body.branch.id, uri: uriOf(reply.body.endpoints[0].id) };
}

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'history' } });
  projectId = body.project.id;
  rootId = body.branch.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  await program.settle(projectId);
}, 240_000);
afterAll(() => program.destroy());

it('gives any moment as a branch, its schema, and the branch back as it was', async () => {
  await ask(uri, 'create table t (n int)');
  await ask(uri, 'insert into t values (1)');
  const first = await moment();
  await ask(uri, 'insert into t values (2)');
  const second = await moment();
  await ask(uri, 'drop table t');

  for (const [name, branch, rows] of [
    ['by_time', { parent_timestamp: first.at }, '1'],
    ['by_lsn', { parent_lsn: second.lsn }, '2'],
  ] as const) {
    const made = await branchFrom({ name, ...branch });
    expect(await ask(made.uri, 'select count(*) from t')).toBe(rows);
    const { body } = await program.api('GET', `${branches()}/${made.id}`);
    expect(body.branch).toMatchObject({ parent_id: rootId, current_state: 'ready', parent_lsn: expect.any(String) });
  }

  // On a busy machine a recovery may take longer than a request waits: it is repeated then.
  const schema = (query: string) =>
    eventually(async () => {
      const reply = await program.api('GET', `${branches()}/${rootId}/schema?db_name=neondb${query}`);
      expect([reply.status, reply.body.message]).toEqual([200, undefined]);
      return reply.body.sql;
    });
  expect(await schema(`&timestamp=${second.at}`)).toContain('CREATE TABLE public.t');
  expect(await schema('')).not.toContain('CREATE TABLE public.t');

  const restore = { source_branch_id: rootId, source_timestamp: second.at, preserve_under_name: 'as_it_was' };
  expect((await program.api('POST', `${branches()}/${rootId}/restore`, restore)).status).toBe(200);
  await program.settle(projectId);
  expect(await ask(uri, 'select count(*) from t')).toBe('2');
}, 240_000);

it('gives the first moment of a branch that was restored, and of one that was copied, at once', async () => {
  const restored = await moment();
  await ask(uri, 'create table after_restore ()');
  const copied = await branchFrom({ name: 'copied' });
  const first = await moment(copied.uri);
  await ask(copied.uri, 'create table after_copy ()');
  const [ofRestored, ofCopied] = [
    await branchFrom({ name: 'of_restored', parent_timestamp: restored.at }),
    await branchFrom({ name: 'of_copied', parent_id: copied.id, parent_lsn: first.lsn }),
  ];
  const tables = "select coalesce(string_agg(relname, ' ' order by relname), '') from pg_stat_user_tables";
  expect(await ask(ofRestored.uri, tables)).toBe('t');
  expect(await ask(ofCopied.uri, tables)).toBe('after_restore t');
  // Also where nobody has ever started a server.
  const asleep = await program.api('POST', branches(), { branch: { name: 'asleep', parent_id: copied.id } });
  await program.settle(projectId, 60_000);
  const now = new Date().toISOString();
  const ofAsleep = await branchFrom({ name: 'of_asleep', parent_id: asleep.body.branch.id, parent_timestamp: now });
  expect(await ask(ofAsleep.uri, tables)).toBe('after_copy after_restore t');
}, 240_000);

it('refuses what it does not have, with the window', async () => {
  await eventually(async () => expect((await historyOf(rootId)).from).toBeDefined());
  const reply = await program.api('POST', branches(), { branch: { parent_timestamp: '2020-01-01T00:00:00Z' } });
  expect([reply.status, reply.body.message]).toEqual([422, expect.stringContaining('which reaches from')]);
});

it.skipIf(!hasForeignClis)(
  'is what neonctl means by --parent MOMENT and ^self@MOMENT',
  async () => {
    await ask(uri, 'create table u as select 7 as n');
    const { at, lsn } = await moment();
    await ask(uri, 'drop table u');
    const folder = await mkdtemp(join(tmpdir(), 'cn-history-'));
    const options = { apiHost: `http://127.0.0.1:${program.httpPort}/api/v2`, apiKey: await program.apiKey(), folder };
    const [cli] = foreignClis;
    const run = (words: string) =>
      runCli(cli as ForeignCli, options, [...words.split(' '), '--project-id', projectId, '--output', 'json']);
    try {
      await run(`branches create --name by_cli --parent ${lsn}`);
      await program.settle(projectId);
      const { body } = await program.api('GET', `${branches()}?search=by_cli`);
      const { endpoints } = (await program.api('GET', `/projects/${projectId}/endpoints`)).body;
      const made = endpoints.find((endpoint: { branch_id: string }) => endpoint.branch_id === body.branches[0].id);
      expect(await ask(uriOf(made.id), 'select n from u')).toBe('7');
      const compared = await eventually(() => run(`branches schema-diff main ^self@${lsn}`));
      expect(compared).toContain('CREATE TABLE public.u');
      await run(`branches restore main ^self@${at.slice(0, 23)}Z --preserve-under-name without_u`);
      await program.settle(projectId);
      expect(await ask(uri, 'select n from u')).toBe('7');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  240_000,
);
