import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import type { LogEntry } from '../../lib/model.ts';

const driver = new FakeDriver();
let api: TestApi;
let path: string;
beforeAll(async () => {
  api = await makeApi({}, undefined, () => ({ readLog: (ref, limit) => driver.readLog(ref, limit) }));
  const { project, endpoints } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  path = `/api/v2/projects/${project.id}/endpoints/${endpoints[0].id}/logs`;
  const entry = (n: number): LogEntry => ({
    at: '2026-11-16T11:00:00.123Z',
    pid: n,
    source: 'session',
    process: 'client backend',
    level: 'LOG',
    message: `entry ${n}`,
  });
  const stray: LogEntry = { at: null, pid: null, source: 'unknown', process: null, level: null, message: 'stray' };
  driver.logs.set(endpoints[0].id, [...Array.from({ length: 150 }, (_, n) => entry(n)), stray]);
});
afterAll(() => api.close());

test('the last entries are shown, a hundred unless asked for otherwise', async () => {
  const { logs } = (await api.call('GET', path)).json();
  expect(logs).toHaveLength(100);
  expect(logs.slice(-2)).toEqual([
    {
      at: '2026-11-16T11:00:00.123Z',
      process: 'client backend',
      pid: 149,
      level: 'LOG',
      source: 'session',
      message: 'entry 149',
    },
    { source: 'unknown', message: 'stray' },
  ]);
  expect((await api.call('GET', `${path}?limit=3`)).json().logs).toHaveLength(3);
});

test.each(['0', '1001', 'all'])('a limit of %s is refused by name', async (limit) => {
  const reply = await api.call('GET', `${path}?limit=${limit}`);
  expect([reply.statusCode, reply.json().message]).toEqual([400, expect.stringContaining('limit')]);
});
