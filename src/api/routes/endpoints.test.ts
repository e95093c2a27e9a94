import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
let base: string;
let rootEndpoint: { id: string; branch_id: string };
beforeAll(async () => {
  api = await makeApi({ pgPort: 7432 });
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  base = `/api/v2/projects/${made.project.id}`;
  rootEndpoint = made.endpoints[0];
});
afterAll(() => api.close());

async function newBranch(): Promise<string> {
  return (await api.call('POST', `${base}/branches`)).json().branch.id;
}
const create = (endpoint: object) => api.call('POST', `${base}/endpoints`, { body: { endpoint } });

/** Stands in for the worker, which is not part of these tests. */
async function observe(id: string, state: 'active' | 'idle'): Promise<void> {
  await api.core.database.sql`
    update endpoints set current_state = ${state}, pending_state = null, started_at = now(), last_active = now()
    where id = ${id}`;
}

describe('create', () => {
  test('with every attribute of the contract', async () => {
    const branchId = await newBranch();
    const reply = await create({
      branch_id: branchId,
      region_id: 'local',
      type: 'read_write',
      settings: { pg_settings: { work_mem: '8MB' }, preload_libraries: { enabled_libraries: ['pg_stat_statements'] } },
      autoscaling_limit_min_cu: 0.5,
      autoscaling_limit_max_cu: 3,
      provisioner: 'k8s-neonvm',
      pooler_enabled: true,
      pooler_mode: 'transaction',
      disabled: false,
      passwordless_access: false,
      suspend_timeout_seconds: 300,
      name: 'a name',
    });
    expect(reply.statusCode).toBe(201);
    const { endpoint, operations } = reply.json();
    expect(endpoint).toMatchObject({
      branch_id: branchId,
      name: 'a name',
      current_state: 'init',
      pending_state: 'active',
      autoscaling_limit_min_cu: 0.5,
      autoscaling_limit_max_cu: 3,
      pooler_enabled: true,
      passwordless_access: false,
      settings: { pg_settings: { work_mem: '8MB' }, preload_libraries: { enabled_libraries: ['pg_stat_statements'] } },
    });
    expect(endpoint.host).toBe(`${endpoint.id}.local.localhost:7432`);
    expect(operations.map((o: { action: string }) => o.action)).toEqual(['start_compute']);
  });

  test('a second read-write compute is a 409, an unknown branch a 404, a strange size a 400', async () => {
    const second = await create({ branch_id: rootEndpoint.branch_id, type: 'read_write' });
    expect([second.statusCode, second.json().message]).toEqual([409, 'read_write endpoint already exists']);
    expect((await create({ branch_id: 'br-none', type: 'read_write' })).statusCode).toBe(404);
    const strange = await create({ branch_id: await newBranch(), type: 'read_write', autoscaling_limit_min_cu: 0.3 });
    expect(strange.statusCode).toBe(400);
    expect(strange.json().message).toContain('autoscaling_limit_min_cu must be one of');
  });
});

test('lists, of the project and of a branch', async () => {
  const all = (await api.call('GET', `${base}/endpoints`)).json().endpoints;
  expect(all.length).toBeGreaterThan(1);
  const own = (await api.call('GET', `${base}/branches/${rootEndpoint.branch_id}/endpoints`)).json().endpoints;
  expect(own.map((endpoint: { id: string }) => endpoint.id)).toEqual([rootEndpoint.id]);
});

describe('start, suspend, delete', () => {
  const path = () => `${base}/endpoints/${rootEndpoint.id}`;

  test('each queues one operation, or none where there is nothing to do', async () => {
    await observe(rootEndpoint.id, 'active');
    expect((await api.call('POST', `${path()}/start`)).json()).toMatchObject({
      endpoint: { current_state: 'active' },
      operations: [],
    });
    const suspended = (await api.call('POST', `${path()}/suspend`)).json();
    expect(suspended.endpoint).toMatchObject({ current_state: 'active', pending_state: 'idle' });
    expect(suspended.operations.map((o: { action: string }) => o.action)).toEqual(['suspend_compute']);
    await observe(rootEndpoint.id, 'idle');
    expect((await api.call('POST', `${path()}/suspend`)).json().operations).toEqual([]);
    const started = (await api.call('POST', `${path()}/start`)).json();
    expect(started.endpoint).toMatchObject({ current_state: 'idle', pending_state: 'active' });
    expect(started.endpoint.last_active).toMatch(/Z$/);
    expect(started.operations.map((o: { action: string }) => o.action)).toEqual(['start_compute']);
  });

  test('a restart needs an active compute, and says what it is instead', async () => {
    const reply = await api.call('POST', `${path()}/restart`);
    expect(reply.statusCode).toBe(412);
    expect(reply.json().message).toBe('only an active endpoint can be restarted; state:"idle"');
  });

  test('delete gives the endpoint back, and then it is gone', async () => {
    await observe(rootEndpoint.id, 'active');
    const reply = await api.call('DELETE', path());
    expect(reply.statusCode).toBe(200);
    expect(reply.json().operations.map((o: { action: string }) => o.action)).toEqual(['suspend_compute']);
    for (const [method, suffix] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/start'],
      ['POST', '/suspend'],
    ] as const) {
      const again = await api.call(method, `${path()}${suffix}`);
      expect([again.statusCode, again.json().message]).toEqual([404, 'endpoint not found']);
    }
  });
});

describe('change', () => {
  let changed: string;
  const path = () => `${base}/endpoints/${changed}`;
  beforeAll(async () => {
    changed = (await create({ branch_id: await newBranch(), type: 'read_write' })).json().endpoint.id;
  });

  test.each([
    [{ autoscaling_limit_min_cu: 0.3 }, /autoscaling_limit_min_cu/],
    [{ autoscaling_limit_min_cu: 4, autoscaling_limit_max_cu: 2 }, /autoscaling_limit_min_cu must not be greater/],
    [{ autoscaling_limit_min_cu: 2, autoscaling_limit_max_cu: 20 }, /above 16 CU are fixed/],
    [{ suspend_timeout_seconds: 59 }, /suspend_timeout_seconds must be 0/],
    [{ suspend_timeout_seconds: 604_801 }, /suspend_timeout_seconds/],
    [{ name: '' }, /body.endpoint.name/],
    [{ type: 'read_only' }, /body.endpoint.type is not a known attribute/],
    [{ region_id: 'local' }, /body.endpoint.region_id is not a known attribute/],
    [{ settings: { pg_settings: { fsync: 'off' } } }, /pg_settings.fsync cannot be set: it could lose or damage data/],
    [{ settings: { pg_settings: { no_such: '1' } } }, /no_such/],
    [{ settings: { pgbouncer_settings: { a: 'b' } } }, /pgbouncer_settings is not supported/],
    [{ settings: { preload_libraries: { enabled_libraries: ['evil'] } } }, /enabled_libraries must be of/],
    [{ disabled: null }, /body.endpoint.disabled/],
  ])('refuses %o', async (endpoint, message) => {
    const reply = await api.call('PATCH', path(), { body: { endpoint } });
    expect(reply.statusCode).toBe(400);
    expect(reply.json().message).toMatch(message);
  });

  test('that is no change does nothing', async () => {
    const before = (await api.call('GET', path())).json().endpoint;
    const reply = await api.call('PATCH', path(), {
      body: { endpoint: { suspend_timeout_seconds: before.suspend_timeout_seconds, disabled: before.disabled } },
    });
    expect(reply.json()).toEqual({ endpoint: before, operations: [] });
  });

  test('of labels needs no operation', async () => {
    const endpoint = { name: 'named', pooler_enabled: true, passwordless_access: false, suspend_timeout_seconds: 600 };
    const reply = await api.call('PATCH', path(), { body: { endpoint } });
    expect(reply.json().endpoint).toMatchObject(endpoint);
    expect(reply.json().operations).toEqual([]);
  });

  test('to a branch that has a compute, or to none, is refused', async () => {
    const { branch_id: branchId } = (await api.call('GET', path())).json().endpoint;
    const made = await api.call('POST', `${base}/branches`, { body: { endpoints: [{ type: 'read_write' }] } });
    const taken = await api.call('PATCH', path(), { body: { endpoint: { branch_id: made.json().branch.id } } });
    expect(taken.statusCode).toBe(409);
    expect(taken.json().message).toBe('read_write endpoint already exists');
    const missing = await api.call('PATCH', path(), { body: { endpoint: { branch_id: 'br-no-such-branch1' } } });
    expect(missing.statusCode).toBe(404);
    const same = await api.call('PATCH', path(), { body: { endpoint: { branch_id: branchId } } });
    expect(same.json().operations).toEqual([]);
  });
});
