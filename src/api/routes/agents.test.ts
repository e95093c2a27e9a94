/** `/mcp`: whom it answers, within which limits, and that what its tools do are requests of the agent itself. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { eventually } from '../../../test/helpers/eventually.ts';
import type { AgentMessage } from '../kit/agents.ts';

let api: TestApi;
let projectId: string;
const uses: string[] = [];

beforeAll(async () => {
  api = await makeApi({}, undefined, () => ({ keyUses: { record: (_key, from) => void uses.push(from) } }));
  projectId = (await api.call('POST', '/api/v2/projects', { body: { project: { name: 'shop' } } })).json().project.id;
});
afterAll(() => api.close());

const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
const callTool = (name: string, given: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: given },
});

interface Sent {
  readonly body?: object;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly from?: string;
}

const post = ({ body = listTools, url = '/mcp', headers = {}, from = '192.0.2.7' }: Sent, app = api.app) =>
  app.inject({
    method: 'POST',
    url,
    remoteAddress: from,
    headers: { accept: 'application/json, text/event-stream', authorization: `Bearer ${api.token}`, ...headers },
    payload: body,
  });

const keyOf = async (scope: string) =>
  (await api.call('POST', '/api/v2/api_keys', { body: { key_name: scope, scope } })).json().key;

const toolsOf = async (sent: Sent) => {
  const reply = (await post(sent)).json();
  return reply.result.tools.map(({ name }: { name: string }) => name);
};

test('a client of the official SDK reads what its key reaches', async () => {
  const address = await api.app.listen({ host: '127.0.0.1', port: 0 });
  const headers = { authorization: `Bearer ${api.token}` };
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', address), { requestInit: { headers } });
  await client.connect(transport as Transport);
  expect(client.getServerVersion()).toMatchObject({ name: 'catnap', version: '0.0.0-test' });
  const { structuredContent } = await client.callTool({ name: 'list_projects', arguments: {} });
  expect(structuredContent).toMatchObject({ projects: [{ id: projectId, name: 'shop' }] });
  await client.close();
});

test('only a key opens it: no cookie, and no other method', async () => {
  const signIn = { method: 'POST', url: '/console/session', payload: { api_key: api.token } } as const;
  const origin = { 'x-catnap-console': '1' };
  const cookie =
    String((await api.app.inject({ ...signIn, headers: origin })).headers['set-cookie']).split(';')[0] ?? '';
  expect(cookie).toContain('=');
  const unkeyed = { accept: 'application/json, text/event-stream' };
  for (const [headers, message] of [
    [unkeyed, 'agents need an API key here'],
    [{ ...unkeyed, ...origin, cookie }, 'agents need an API key here'],
    [{ ...unkeyed, authorization: 'Bearer wrong' }, 'this API key is wrong, or no longer valid'],
  ] as const) {
    const reply = await api.app.inject({ method: 'POST', url: '/mcp', headers, payload: listTools });
    expect([reply.statusCode, reply.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    expect(reply.json().message).toContain(message);
  }
  const got = await api.app.inject({ method: 'GET', url: '/mcp', headers: { authorization: `Bearer ${api.token}` } });
  expect([got.statusCode, got.headers.allow]).toEqual([405, 'POST']);
});

test('the address chooses level and project; the key stays the limit', async () => {
  expect(await toolsOf({})).not.toContain('create_branch');
  expect(await toolsOf({ url: '/mcp?access=branch' })).toContain('create_branch');
  expect(await toolsOf({ url: '/mcp?access=write' })).toContain('get_connection_string');
  const readOnly = { authorization: `Bearer ${await keyOf('read_only')}` };
  expect(await toolsOf({ url: '/mcp?access=write', headers: readOnly })).toEqual([
    'list_projects',
    'describe_project',
    'describe_branch',
    'compare_schemas',
  ]);
  const bound = (await post({ url: '/mcp?project=nowhere', body: callTool('describe_project') })).json();
  expect(bound.result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('nowhere') }] });
});

test('what it cannot take it refuses with a sentence', async () => {
  const level = await post({ url: '/mcp?access=all' });
  expect(level.statusCode).toBe(400);
  expect(level.json().message).toMatch(/access.*read.*branch.*write/);
  const batch = await post({ body: [listTools, listTools] });
  expect([batch.statusCode, batch.json().message]).toEqual([400, expect.stringContaining('one message')]);
  const noMessage = await post({ body: { hello: 'there' } });
  expect([noMessage.statusCode, noMessage.json().error.message]).toEqual([400, expect.stringContaining('Invalid')]);
  expect((await post({ headers: { accept: 'application/json' } })).statusCode).toBe(406);
  const unknown = (await post({ body: callTool('drop_everything') })).json();
  expect(JSON.stringify(unknown)).toContain('drop_everything');
});

test('its tools act from the address of the agent', async () => {
  uses.length = 0;
  await post({ body: callTool('list_projects'), from: '198.51.100.9' });
  expect(uses.length).toBeGreaterThan(2);
  expect(new Set(uses)).toEqual(new Set(['198.51.100.9']));
});

test('a key has few calls under way at once, whatever becomes of them', async () => {
  const waiting: { readonly message: AgentMessage; readonly end: (error?: Error) => void }[] = [];
  const busy = await makeApi({}, undefined, () => ({
    answerAgent: (message) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error) => (error ? reject(error) : resolve({ status: 202, headers: {}, body: '' }));
        waiting.push({ message, end });
      }),
  }));
  const send = () => post({ headers: { authorization: `Bearer ${busy.token}` } }, busy.app);
  const begun = Array.from({ length: 8 }, send);
  await eventually(() => expect(waiting).toHaveLength(8));
  const refused = await send();
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, '1']);
  expect(refused.json().message).toBe('a key may have 8 calls under way here');
  waiting.forEach(({ end }, at) => void end(at % 2 === 0 ? undefined : new Error('gone wrong')));
  const statuses = (await Promise.all(begun)).map(({ statusCode }) => statusCode);
  expect(statuses.sort()).toEqual([202, 202, 202, 202, 500, 500, 500, 500]);
  const next = send();
  await eventually(() => expect(waiting).toHaveLength(9));
  waiting.at(-1)?.end();
  expect((await next).statusCode).toBe(202);
  await busy.close();
});

test('messages count, and so does what they cause', async () => {
  const limited = await makeApi({ rateLimitPerMinute: 3 });
  const send = (body: object) => post({ body, headers: { authorization: `Bearer ${limited.token}` } }, limited.app);
  // Each asks the API about its key, so that both run out together.
  const statuses = [];
  for (let at = 0; at < 4; at += 1) statuses.push((await send(listTools)).statusCode);
  expect(statuses).toEqual([200, 200, 200, 429]);
  const other = await makeApi({ rateLimitPerMinute: 3 });
  const call = callTool('list_projects');
  const answers = [];
  for (let at = 0; at < 2; at += 1)
    answers.push((await post({ body: call, headers: { authorization: `Bearer ${other.token}` } }, other.app)).json());
  expect(answers.map(({ result }) => result.isError ?? false)).toEqual([false, true]);
  expect(answers[1].result.content[0].text).toContain('too many requests');
  await Promise.all([limited.close(), other.close()]);
});
