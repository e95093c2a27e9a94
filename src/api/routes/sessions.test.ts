/** The routes over a server that is told what to answer; a journey of the console asks a real one. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import type { ServerSession } from '../../lib/model.ts';

const at = new Date('2026-11-16T11:00:00.123Z');
const busy: ServerSession = {
  id: '6919b0f0.1f',
  pid: 31,
  role: 'neondb_owner',
  database: 'neondb',
  applicationName: 'shop',
  kind: 'client backend',
  state: 'active',
  waitType: 'Lock',
  waitEvent: 'transactionid',
  startedAt: at,
  transactionAt: at,
  queryAt: at,
  stateAt: at,
  query: 'update orders set total = 1',
  leaderPid: null,
  blockedBy: [30],
  lockType: 'transactionid',
  lockMode: 'ShareLock',
  waitingAt: at,
};
const worker: ServerSession = {
  ...busy,
  id: '6919b0f0.20',
  pid: 32,
  role: null,
  applicationName: null,
  kind: 'autovacuum worker',
  state: null,
  waitType: null,
  waitEvent: null,
  transactionAt: null,
  queryAt: null,
  stateAt: null,
  query: null,
  blockedBy: [],
  lockType: null,
  lockMode: null,
  waitingAt: null,
};

let api: TestApi;
let path: string;
let endpointId: string;
let isReachable = true;
const asked: unknown[] = [];
const address = { kind: 'unix', path: '/s' };

beforeAll(async () => {
  const sessions = {
    read: async (server: unknown) => {
      asked.push(server);
      if (!isReachable) throw new Error('connection refused');
      return [busy, worker];
    },
    signal: async (_: unknown, id: string, how: string) => {
      asked.push([id, how]);
      return id === busy.id;
    },
  };
  api = await makeApi({}, undefined, () => ({ sessions }));
  const { project, endpoints } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  endpointId = endpoints[0].id;
  path = `/api/v2/projects/${project.id}/endpoints/${endpointId}/sessions`;
});
afterAll(() => api.close());

beforeEach(async () => {
  isReachable = true;
  asked.length = 0;
  const { sql } = api.core.database;
  await sql`update endpoints set address = ${sql.json(address)} where id = ${endpointId}`;
});

test('a compute that sleeps has none, and is not asked', async () => {
  await api.core.database.sql`update endpoints set address = null where id = ${endpointId}`;
  const reply = (await api.call('GET', path)).json();
  expect(reply).toMatchObject({ is_awake: false, sessions: [] });
  expect((await api.call('POST', `${path}/${busy.id}/cancel`)).statusCode).toBe(404);
  expect(asked).toEqual([]);
});

test('one that is awake tells what each does and whom it waits for', async () => {
  const reply = (await api.call('GET', path)).json();
  expect(asked).toEqual([{ address, adminSecret: expect.any(String) }]);
  expect(reply).toEqual({
    is_awake: true,
    read_at: expect.any(String),
    sessions: [
      {
        id: '6919b0f0.1f',
        pid: 31,
        kind: 'client backend',
        role: 'neondb_owner',
        database: 'neondb',
        application_name: 'shop',
        state: 'active',
        started_at: at.toISOString(),
        transaction_started_at: at.toISOString(),
        query_started_at: at.toISOString(),
        state_changed_at: at.toISOString(),
        query: 'update orders set total = 1',
        wait: 'Lock: transactionid',
        lock: 'ShareLock on transactionid',
        waiting_since: at.toISOString(),
        blocked_by: [30],
      },
      {
        id: '6919b0f0.20',
        pid: 32,
        kind: 'autovacuum worker',
        database: 'neondb',
        started_at: at.toISOString(),
        blocked_by: [],
      },
    ],
  });
});

test('a session is cancelled and ended by its id, and one that is gone is a 404', async () => {
  expect((await api.call('POST', `${path}/${busy.id}/cancel`)).json()).toEqual({});
  expect((await api.call('POST', `${path}/${busy.id}/terminate`)).statusCode).toBe(200);
  expect(asked).toEqual([
    [busy.id, 'cancel'],
    [busy.id, 'terminate'],
  ]);
  const gone = await api.call('POST', `${path}/6919b0f0.99/cancel`);
  expect([gone.statusCode, gone.json().message]).toEqual([404, 'session not found']);
});

test('a server that does not answer is a 503, and its cause stays in the log', async () => {
  isReachable = false;
  const reply = await api.call('GET', path);
  expect([reply.statusCode, reply.json().message]).toEqual([503, 'the server of the compute does not answer']);
});
