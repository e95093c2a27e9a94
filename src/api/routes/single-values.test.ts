import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
let project: { id: string };
let endpoint: { id: string; branch_id: string };
beforeAll(async () => {
  api = await makeApi();
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  project = made.project;
  [endpoint] = made.endpoints;
});
afterAll(() => api.close());

const path = () => `/api/v2/projects/${project.id}`;
const change = (body: object) => api.call('PATCH', path(), { body: { project: body } });
const changeEndpoint = (body: object) =>
  api.call('PATCH', `${path()}/endpoints/${endpoint.id}`, { body: { endpoint: body } });

describe('a fresh project shows what is true', () => {
  test('of its settings and of its compute', async () => {
    const shown = (await api.call('GET', path())).json().project;
    expect(shown.provisioner).toBe('k8s-neonvm');
    expect(shown.settings).toMatchObject({
      block_public_connections: false,
      allow_outbound_connections: false,
      block_vpc_connections: false,
      hipaa: false,
    });
    expect(shown.settings).not.toHaveProperty('audit_log_level');
    const compute = (await api.call('GET', `${path()}/endpoints/${endpoint.id}`)).json().endpoint;
    expect(compute).toMatchObject({ provisioner: 'k8s-neonvm', pooler_enabled: true, pooler_mode: 'transaction' });
    expect(compute.settings).toEqual({ pg_settings: {} });
  });
});

describe('a field with one possible value', () => {
  test('takes that value', async () => {
    const settings = { block_vpc_connections: false, hipaa: false };
    expect((await change({ settings })).statusCode).toBe(200);
    const made = await api.call('POST', '/api/v2/projects', { body: { project: { provisioner: 'k8s-neonvm' } } });
    expect(made.statusCode).toBe(201);
    const same = await changeEndpoint({ provisioner: 'k8s-neonvm', pooler_mode: 'transaction' });
    expect([same.statusCode, same.json().operations]).toEqual([200, []]);
  });

  test.each([
    [{ block_vpc_connections: true }, /settings\.block_vpc_connections must be false: there are no VPC endpoints/],
    [{ hipaa: true }, /settings\.hipaa must be false: /],
    [{ audit_log_level: 'base' }, /settings\.audit_log_level must be left out: Catnap keeps no audit log/],
  ])('refuses %o of a project with the reason, and changes nothing', async (settings, reason) => {
    const before = (await api.call('GET', path())).json();
    for (const reply of [
      await change({ name: 'other', settings }),
      await api.call('POST', '/api/v2/projects', { body: { project: { settings } } }),
    ]) {
      expect(reply.statusCode).toBe(422);
      expect(reply.json().message).toMatch(reason);
    }
    expect((await api.call('GET', path())).json()).toEqual(before);
  });

  test('refuses another provisioner wherever one can be named', async () => {
    const other = { provisioner: 'k8s-pod' };
    for (const reply of [
      await api.call('POST', '/api/v2/projects', { body: { project: other } }),
      await changeEndpoint(other),
      await api.call('POST', `${path()}/endpoints`, {
        body: { endpoint: { branch_id: endpoint.branch_id, type: 'read_only', ...other } },
      }),
      await api.call('POST', `${path()}/branches`, { body: { endpoints: [{ type: 'read_write', ...other }] } }),
    ]) {
      expect(reply.statusCode).toBe(422);
      expect(reply.json().message).toMatch(/provisioner must be k8s-neonvm/);
    }
  });

  test('refuses settings of the pooler in the defaults too', async () => {
    const refused = await change({ default_endpoint_settings: { pgbouncer_settings: { pool_mode: 'session' } } });
    expect(refused.statusCode).toBe(400);
    expect(refused.json().message).toMatch(/default_endpoint_settings\.pgbouncer_settings is not supported/);
    expect((await change({ default_endpoint_settings: { pgbouncer_settings: {} } })).statusCode).toBe(200);
  });
});

test('block_public_connections is kept', async () => {
  const reply = await change({ settings: { block_public_connections: true } });
  expect(reply.json().project.settings.block_public_connections).toBe(true);
});

test('a compute without its pooled host has no pooled connection string', async () => {
  const closed = await changeEndpoint({ pooler_enabled: false });
  expect(closed.json()).toMatchObject({ endpoint: { pooler_enabled: false }, operations: [] });
  const ask = (pooled: boolean) =>
    api.call('GET', `${path()}/connection_uri?role_name=neondb_owner&database_name=neondb&pooled=${pooled}`);
  const refused = await ask(true);
  expect([refused.statusCode, refused.json().message]).toEqual([
    412,
    'connection pooling is disabled for this endpoint: pooler_enabled',
  ]);
  expect((await ask(false)).statusCode).toBe(200);
});

test('settings of a new compute replace those parts of the defaults that they name', async () => {
  const defaults = { pg_settings: { work_mem: '8MB' } };
  const body = { project: { default_endpoint_settings: defaults } };
  const made = (await api.call('POST', '/api/v2/projects', { body })).json();
  const add = async (settings: object) => {
    const endpoints = [{ type: 'read_write', settings }];
    const reply = await api.call('POST', `/api/v2/projects/${made.project.id}/branches`, { body: { endpoints } });
    return reply.json().endpoints[0].settings;
  };
  expect(made.endpoints[0].settings).toEqual(defaults);
  const libraries = { preload_libraries: { use_defaults: false } };
  expect(await add(libraries)).toEqual({ ...defaults, ...libraries });
  expect(await add({ pg_settings: {} })).toEqual({ pg_settings: {} });
});
