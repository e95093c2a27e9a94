/** The MCP server, driven by the client of the official SDK: over standard input and output, and what it refuses. */
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../src/cli/kit/client.ts';
import type { AccessLevel } from '../../src/cli/mcp/access.ts';
import { readKey } from '../../src/cli/mcp/key.ts';
import { createMcpServer } from '../../src/cli/mcp/server.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
let program: Program;
let projectId: string;
let uri: string;
const open: Client[] = [];

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'shop' } });
  projectId = body.project.id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, 'CREATE TABLE cats (id int PRIMARY KEY, name text NOT NULL)');
  await ask(uri, `COMMENT ON TABLE cats IS 'who naps here'`);
  await ask(uri, `INSERT INTO cats VALUES (1, 'Tom'), (2, 'Minka')`);
});
afterAll(async () => {
  for (const client of open) await client.close();
  await program.destroy();
});

const url = () => `http://127.0.0.1:${program.httpPort}`;

/** The server in this process, with another key or bound to a project if asked. */
async function connect(access: AccessLevel, options: { readonly key?: string; readonly project?: string } = {}) {
  const api = createClient({ url: url(), apiKey: async () => options.key ?? (await program.apiKey()) });
  const key = await readKey(api);
  const server = createMcpServer(api, { version: '1.2.3', access, key, project: options.project });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '1' });
  await Promise.all([server.connect(theirs), client.connect(ours)]);
  open.push(client);
  return client;
}

interface Answer {
  readonly isError: boolean;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
  readonly data: any;
}

async function call(client: Client, name: string, given: Record<string, unknown> = {}): Promise<Answer> {
  const { isError = false, content, structuredContent } = await client.callTool({ name, arguments: given });
  const [first] = content as { readonly text: string }[];
  return { isError: isError === true, text: first?.text ?? '', data: structuredContent };
}

const namesOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name).sort();

test('a client starts it, lists its tools, runs SQL, and ends it by closing its input', async () => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [entry, 'mcp'],
    env: { CATNAP_HOME: program.home.path, CATNAP_HTTP_PORT: String(program.httpPort) },
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  expect(client.getServerVersion()?.name).toBe('catnap');
  expect(await namesOf(client)).toContain('run_sql');
  const { data } = await call(client, 'run_sql', { sql: 'SELECT count(*)::int AS cats FROM cats' });
  expect(data).toEqual({ command: 'SELECT 1', columns: ['cats'], rows: [[2]], has_more: false });
  const { pid } = transport;
  await client.close();
  expect(() => process.kill(pid ?? 0, 0)).toThrow('ESRCH');
});

describe('a server that may only read', () => {
  let client: Client;
  beforeAll(async () => {
    client = await connect('read');
  });

  test('has no tool that changes anything', async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual([
      'compare_schemas',
      'describe_branch',
      'describe_project',
      'describe_table',
      'explain_sql',
      'list_projects',
      'list_tables',
      'run_sql',
    ]);
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
  });

  test('lists and describes', async () => {
    expect((await call(client, 'list_projects')).data.projects).toMatchObject([{ id: projectId, name: 'shop' }]);
    const project = (await call(client, 'describe_project')).data;
    expect(project).toMatchObject({ branches: [{ name: 'main', default: true }], computes: [{ type: 'read_write' }] });
    const branch = (await call(client, 'describe_branch', { project: 'shop', branch: 'main' })).data;
    expect(branch).toMatchObject({ databases: [{ name: 'neondb', owner: 'neondb_owner' }], roles: ['neondb_owner'] });
    expect(branch.history).toBeDefined();
    const { tables } = (await call(client, 'list_tables')).data;
    expect(tables).toMatchObject([{ schema: 'public', name: 'cats', kind: 'table', comment: 'who naps here' }]);
    const table = (await call(client, 'describe_table', { table: 'cats' })).data;
    expect(table.columns.map(({ name }: { name: string }) => name)).toEqual(['id', 'name']);
    expect(table.indexes[0].definition).toContain('CREATE UNIQUE INDEX cats_pkey');
    const none = await call(client, 'describe_table', { table: 'dogs' });
    expect(none).toMatchObject({
      isError: true,
      text: 'there is no table or view dogs: list_tables names what there is',
    });
    expect(JSON.stringify([project, branch])).not.toContain('password');
  });

  test.each([
    `INSERT INTO cats VALUES (3, 'Felix')`,
    'WITH gone AS (DELETE FROM cats RETURNING id) SELECT * FROM gone',
    'DROP TABLE cats',
    `DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM cats; END $$`,
    `DO $$ BEGIN PERFORM set_config('transaction_read_only', 'off', true); DELETE FROM cats; END $$`,
    `SELECT set_config('transaction_read_only', 'off', false)`,
    'COMMIT; DELETE FROM cats',
    'SELECT 1; DELETE FROM cats',
    'COMMIT',
    `COPY cats FROM STDIN`,
  ])('refuses %s', async (sql) => {
    const { isError } = await call(client, 'run_sql', { sql });
    const explained = await call(client, 'explain_sql', { sql, analyze: true });
    expect([isError, explained.isError]).toEqual([true, true]);
    expect(await ask(uri, 'SELECT count(*) FROM cats')).toBe('2');
  });

  test('does not go on writing in the next call', async () => {
    await call(client, 'run_sql', { sql: 'BEGIN' });
    await call(client, 'run_sql', { sql: 'SET TRANSACTION READ WRITE' });
    await call(client, 'run_sql', { sql: 'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE' });
    await call(client, 'run_sql', { sql: 'SET default_transaction_read_only = off' });
    expect((await call(client, 'run_sql', { sql: 'DELETE FROM cats' })).isError).toBe(true);
    expect(await ask(uri, 'SELECT count(*) FROM cats')).toBe('2');
  });

  test('explains, with and without running it', async () => {
    const sql = 'SELECT * FROM cats WHERE id = 1';
    const planned = (await call(client, 'explain_sql', { sql })).data.plan.join('\n');
    const measured = (await call(client, 'explain_sql', { sql, analyze: true })).data.plan.join('\n');
    expect(planned).toContain('cats');
    expect(planned).not.toContain('actual');
    expect(measured).toContain('actual');
  });

  test('ends what takes too long, and leaves out what is too much', async () => {
    const many = 'SELECT generate_series(1, 5000) AS n';
    expect((await call(client, 'run_sql', { sql: many })).data).toMatchObject({
      has_more: true,
      rows: { length: 100 },
    });
    expect((await call(client, 'run_sql', { sql: many, max_rows: 3 })).data.rows).toEqual([[1], [2], [3]]);
    expect((await call(client, 'run_sql', { sql: many, max_rows: 100_000 })).text).toContain('max_rows');
    const wide = await call(client, 'run_sql', { sql: `SELECT repeat('x', 300000)` });
    expect(wide).toMatchObject({ isError: true, text: expect.stringContaining('200000 characters') });
    const broad = (await call(client, 'run_sql', { sql: `SELECT repeat('x', 90000) FROM generate_series(1, 5)` })).data;
    expect([broad.rows.length, broad.has_more]).toEqual([2, true]);
    const slow = await call(client, 'run_sql', { sql: 'SELECT pg_sleep(600)', timeout_seconds: 1 });
    expect(slow).toMatchObject({ isError: true, text: expect.stringContaining('SQLSTATE 57014') });
    expect((await call(client, 'run_sql', { sql: 'SELEC' })).text).toMatch(/^ERROR: syntax error.*SQLSTATE 42601/);
    expect((await call(client, 'run_sql', { sql: 'SELECT 1', branhc: 'main' })).isError).toBe(true);
  });
});

describe('a server that may change other branches than the default one', () => {
  test('makes a branch, changes it, compares it, restores it to a moment, and deletes it', async () => {
    const client = await connect('branch', { project: projectId });
    expect(await namesOf(client)).not.toContain('get_connection_string');
    const refused = await call(client, 'execute_sql', { sql: 'DELETE FROM cats' });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('main is the default branch') });
    for (const [tool, given] of [
      ['delete_branch', {}],
      ['restore_branch', { at: '2026-01-01T00:00:00Z' }],
    ] as const) {
      expect((await call(client, tool, { branch: 'main', ...given })).text).toContain('main is the default branch');
    }
    const made = (await call(client, 'create_branch', { name: 'trial' })).data;
    expect(made).toMatchObject({ name: 'trial', state: 'ready', computes: [{ type: 'read_write' }] });
    const inTrial = (sql: string) => call(client, 'execute_sql', { sql, branch: 'trial' });
    expect((await inTrial('ALTER TABLE cats ADD COLUMN age int')).data.command).toBe('ALTER TABLE');
    expect((await call(client, 'compare_schemas', { branch: 'trial' })).data.diff).toMatch(/^\+ +age integer/m);
    const [[before]] = (await inTrial('SELECT clock_timestamp()::text')).data.rows;
    await inTrial('DELETE FROM cats');
    const at = new Date(before).toISOString();
    const restored = (await call(client, 'restore_branch', { branch: 'trial', at })).data;
    expect(restored).toMatchObject({ name: 'trial', kept_in: expect.stringMatching(/^trial before /) });
    const count = { sql: 'SELECT count(*)::int FROM cats' };
    expect((await call(client, 'run_sql', { ...count, branch: 'trial' })).data.rows).toEqual([[2]]);
    expect((await call(client, 'run_sql', { ...count, branch: restored.kept_in })).text).toContain('has no compute');
    expect((await call(client, 'restore_branch', { branch: 'trial' })).text).toContain('say what it is restored to');
    expect((await call(client, 'delete_branch', { branch: 'trial' })).data.deleted.name).toBe('trial');
    expect((await call(client, 'describe_branch', { branch: 'trial' })).text).toBe('there is no branch trial');
    expect(await ask(uri, 'SELECT count(*) FROM cats')).toBe('2');
  });
});

test('a server that may write changes the default branch, and hands out connection strings', async () => {
  const client = await connect('write');
  await call(client, 'execute_sql', { sql: 'INSERT INTO cats VALUES ($1, $2)', params: [9, 'Felix'] });
  const string = (await call(client, 'get_connection_string', { pooled: true })).data.uri;
  expect(await ask(string, 'SELECT name FROM cats WHERE id = 9')).toBe('Felix');
  await call(client, 'execute_sql', { sql: 'DELETE FROM cats WHERE id = 9' });
  expect(await ask(uri, 'SELECT count(*) FROM cats')).toBe('2');
});

test('a key of one project reaches no other, whatever the call names', async () => {
  const { body: other } = await program.api('POST', '/projects', { project: { name: 'other' } });
  const { body: project } = await program.api('GET', `/projects/${projectId}`);
  const keys = `/organizations/${project.project.org_id}/api_keys`;
  const { body: made } = await program.api('POST', keys, { key_name: 'agent', project_id: projectId });
  const client = await connect('write', { key: made.key, project: projectId });
  expect((await call(client, 'list_projects')).data.projects).toMatchObject([{ id: projectId }]);
  expect((await call(client, 'run_sql', { sql: 'SELECT 1' })).data.rows).toEqual([[1]]);
  expect((await call(client, 'run_sql', { sql: 'SELECT 1', project: other.project.id })).isError).toBe(true);
  const loose = await connect('write', { key: made.key });
  expect((await call(loose, 'run_sql', { sql: 'SELECT 1', project: other.project.id })).isError).toBe(true);
  await program.removeProject(other.project.id);
});

test('a key of limited scope gets the tools that make sense with it, and is held to it', async () => {
  const keyOf = async (scope: string) => (await program.api('POST', '/api_keys', { key_name: scope, scope })).body.key;
  const reader = await connect('write', { key: await keyOf('read_only'), project: projectId });
  expect(await namesOf(reader)).toEqual(['compare_schemas', 'describe_branch', 'describe_project', 'list_projects']);
  expect(reader.getInstructions()).toMatch(/The key of this server may read what Catnap knows/);
  const asker = await connect('write', { key: await keyOf('sql'), project: projectId });
  expect(await namesOf(asker)).not.toContain('create_branch');
  expect((await call(asker, 'run_sql', { sql: 'SELECT 1' })).data.rows).toEqual([[1]]);
  expect((await call(asker, 'describe_branch')).data.databases).toMatchObject([{ name: 'neondb' }]);

  const brancher = await connect('branch', { key: await keyOf('branches'), project: projectId });
  const { text } = await call(brancher, 'run_sql', { sql: 'SELECT 1' });
  expect(text).toMatch(/^API keys of scope branches leave the default branch and protected branches alone/);
  await call(brancher, 'create_branch', { name: 'agent' });
  const place = { branch: 'agent' };
  expect((await call(brancher, 'execute_sql', { ...place, sql: 'DELETE FROM cats' })).isError).toBe(false);
  expect((await call(brancher, 'run_sql', { ...place, sql: 'SELECT id FROM cats' })).data.rows).toEqual([]);
  expect((await call(brancher, 'delete_branch', place)).isError).toBe(false);
});

describe('over HTTP', () => {
  async function connectOver(query: string, key: string): Promise<Client> {
    const headers = { authorization: `Bearer ${key}` };
    const client = new Client({ name: 'test', version: '1' });
    const address = new URL(`/mcp${query}`, url());
    await client.connect(new StreamableHTTPClientTransport(address, { requestInit: { headers } }) as Transport);
    open.push(client);
    return client;
  }

  test('the API serves whoever has a key, with the rights of that key', async () => {
    const client = await connectOver('', await program.apiKey());
    expect(await namesOf(client)).toContain('run_sql');
    expect(await namesOf(client)).not.toContain('execute_sql');
    expect((await call(client, 'run_sql', { sql: 'SELECT 6 * 7 AS n' })).data.rows).toEqual([[42]]);
    const refused = await call(client, 'run_sql', { sql: 'DELETE FROM cats' });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('read-only transaction') });
  });

  test('an agent makes a branch and works there, in the project that the address names', async () => {
    const { key } = (await program.api('POST', '/api_keys', { key_name: 'remote', scope: 'branches' })).body;
    const client = await connectOver(`?access=branch&project=${projectId}`, key);
    expect((await call(client, 'create_branch', { name: 'remote' })).data).toMatchObject({ state: 'ready' });
    const place = { branch: 'remote' };
    expect((await call(client, 'execute_sql', { ...place, sql: 'DELETE FROM cats' })).data.command).toBe('DELETE 2');
    expect((await call(client, 'delete_branch', place)).isError).toBe(false);
    expect(await ask(uri, 'SELECT count(*) FROM cats')).toBe('2');
  });

  test('a project that lets certain addresses in lets no agent in from another', async () => {
    const path = `/projects/${projectId}`;
    const allow = (ips: readonly string[]) =>
      program.api('PATCH', path, { project: { settings: { allowed_ips: { ips, protected_branches_only: false } } } });
    const client = await connectOver('', await program.apiKey());
    await allow(['192.0.2.1']);
    await eventually(async () => {
      const { text } = await call(client, 'run_sql', { sql: 'SELECT 1' });
      expect(text).toContain('not allowed');
    });
    await allow([]);
  });
});
