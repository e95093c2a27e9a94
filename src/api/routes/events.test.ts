/** The stream of changes: what each caller gets, and when it ends. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { eventually } from '../../../test/helpers/eventually.ts';
import { heartbeatMs } from './events.ts';

let api: TestApi;
let address: string;
beforeAll(async () => {
  api = await makeApi();
  address = await api.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => api.close());

interface Stream {
  readonly status: number;
  readonly operations: { readonly project_id: string; readonly action: string; readonly status: string }[];
  isEnded: boolean;
  close(): void;
}

/** Not with fetch, which fails to close some of many concurrent streams. */
async function open(token: string, at = address): Promise<Stream> {
  const asking = get(`${at}/api/v2/events`, { agent: false, headers: { authorization: `Bearer ${token}` } });
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const status = response.statusCode ?? 0;
  const stream: Stream = { status, operations: [], isEnded: false, close: () => asking.destroy() };
  void collect(response, stream);
  if (status === 200) expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  return stream;
}

async function collect(response: IncomingMessage, stream: Stream): Promise<void> {
  let text = '';
  try {
    for await (const chunk of response) {
      text += String(chunk);
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      for (const part of parts.filter((event) => event.startsWith('event: operation')))
        stream.operations.push(JSON.parse(part.split('data: ')[1] ?? '').operation);
    }
  } catch {
    // Closed by the test.
  }
  stream.isEnded = true;
}

const createProject = async (token = api.token): Promise<string> =>
  (await api.call('POST', '/api/v2/projects', { token, body: { project: {} } })).json().project.id;

test('tells of operations as they begin, to those who may see them and to nobody else', async () => {
  const orgId = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
  const first = await createProject();
  const makeKey = async (body: object) =>
    (await api.call('POST', `/api/v2/organizations/${orgId}/api_keys`, { body })).json().key;
  const ofProject = await open(await makeKey({ key_name: 'one project', project_id: first }));
  const ofOrganization = await open(await makeKey({ key_name: 'organization' }));
  const personal = await open(api.token);
  const stranger = await open(api.strangerToken);
  const second = await createProject();
  const foreign = await createProject(api.strangerToken);
  const projectsOf = (stream: Stream) => [...new Set(stream.operations.map((operation) => operation.project_id))];
  await eventually(() => {
    expect(projectsOf(personal)).toEqual([second]);
    expect(projectsOf(ofOrganization)).toEqual([second]);
    expect(projectsOf(stranger)).toEqual([foreign]);
  });
  expect(projectsOf(ofProject)).toEqual([]);
  expect(personal.operations.map((operation) => operation.action).sort()).toEqual(['create_timeline', 'start_compute']);
  await api.call('DELETE', `/api/v2/projects/${first}`);
  for (const stream of [ofProject, ofOrganization, personal, stranger]) stream.close();
});

test('a change is told once', async () => {
  const stream = await open(api.token);
  const projectId = await createProject();
  await eventually(() => expect(stream.operations.length).toBe(2));
  const { sql } = api.core.database;
  await sql`update operations set status = 'running', updated_at = clock_timestamp() where project_id = ${projectId}`;
  await sql`select pg_notify('catnap_changes', '')`;
  await eventually(() => expect(stream.operations.length).toBe(4));
  await sql`select pg_notify('catnap_changes', '')`;
  await createProject();
  await eventually(() => expect(stream.operations.length).toBeGreaterThan(5));
  expect(stream.operations.filter((operation) => operation.project_id === projectId)).toHaveLength(4);
  stream.close();
});

test('the deletion of a branch is told, also of one that has no compute and can be recovered', async () => {
  const path = `/api/v2/projects/${await createProject()}/branches`;
  const { branch } = (await api.call('POST', path, { body: { branch: { name: 'bare' } } })).json();
  await api.core.database
    .sql`update branches set current_state = 'ready', pending_state = null where id = ${branch.id}`;
  const stream = await open(api.token);
  expect((await api.call('DELETE', `${path}/${branch.id}`)).statusCode).toBe(200);
  await eventually(() => expect(stream.operations).toMatchObject([{ action: 'delete_timeline' }]));
  stream.close();
});

test('needs a key, and one key has no more than forty at once', async () => {
  expect((await open('napi_wrong')).status).toBe(401);
  const streams: Stream[] = [];
  for (let i = 0; i < 40; i += 1) streams.push(await open(api.token));
  expect(streams.map((stream) => stream.status)).toEqual(Array(40).fill(200));
  expect((await open(api.token)).status).toBe(429);
  streams[0]?.close();
  await eventually(async () => {
    const again = await open(api.token);
    streams.push(again);
    expect(again.status).toBe(200);
  });
  for (const stream of streams) stream.close();
});

/** Less than the heartbeat, which would find it out too. */
const atOnce = { deadlineMs: heartbeatMs - 1_000 };

test('ends at once when its key is revoked, and other keys go on', async () => {
  const orgId = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
  const paths = ['/api/v2/api_keys', `/api/v2/organizations/${orgId}/api_keys`];
  const other = await open(api.token);
  for (const path of paths) {
    const { id, key } = (await api.call('POST', path, { body: { key_name: 'lost' } })).json();
    const stream = await open(key);
    await api.call('DELETE', `${path}/${id}`);
    await eventually(() => expect(stream.isEnded).toBe(true), atOnce);
    const later = await createProject();
    await eventually(() => expect(other.operations.map((operation) => operation.project_id)).toContain(later));
    expect(stream.operations.map((operation) => operation.project_id)).not.toContain(later);
  }
  expect(other.isEnded).toBe(false);
  other.close();
});

test('ends at once when the only project of its key is deleted', async () => {
  const orgId = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
  const projectId = await createProject();
  const body = { key_name: 'of a project', project_id: projectId };
  const { key } = (await api.call('POST', `/api/v2/organizations/${orgId}/api_keys`, { body })).json();
  const stream = await open(key);
  expect(stream.status).toBe(200);
  await api.call('DELETE', `/api/v2/projects/${projectId}`);
  await eventually(() => expect(stream.isEnded).toBe(true), atOnce);
});

test('ends when the server closes', async () => {
  const other = await makeApi();
  const place = await other.app.listen({ host: '127.0.0.1', port: 0 });
  const stream = await open(other.token, place);
  await other.close();
  await eventually(() => expect(stream.isEnded).toBe(true));
});
