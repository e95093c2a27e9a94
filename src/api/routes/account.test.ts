import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
let org: string;
let project: string;
beforeAll(async () => {
  api = await makeApi();
  org = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
  project = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json().project.id;
});
afterAll(() => api.close());

const orgKeys = () => `/api/v2/organizations/${org}/api_keys`;
const newKey = async (path: string, body: object) => (await api.call('POST', path, { body })).json();

describe('personal keys', () => {
  test('made, used, listed without the secret, revoked', async () => {
    const made = await newKey('/api/v2/api_keys', { key_name: 'ci' });
    expect(made).toMatchObject({ name: 'ci', key: expect.stringMatching(/^napi_[a-z0-9]{60}$/) });
    expect((await api.call('GET', '/api/v2/projects', { token: made.key })).statusCode).toBe(200);
    const listed = (await api.call('GET', '/api/v2/api_keys')).json();
    const item = listed.find((key: { id: number }) => key.id === made.id);
    expect(item).toMatchObject({
      name: 'ci',
      created_by: { id: made.created_by, name: 'Admin' },
      last_used_from_addr: '',
    });
    expect(JSON.stringify(listed)).not.toContain(made.key);
    const revoked = (await api.call('DELETE', `/api/v2/api_keys/${made.id}`)).json();
    expect(revoked).toMatchObject({ id: made.id, revoked: true, last_used_at: null });
    expect((await api.call('GET', '/api/v2/projects', { token: made.key })).statusCode).toBe(401);
    expect((await api.call('DELETE', `/api/v2/api_keys/${made.id}`)).statusCode).toBe(404);
  });
});

test('whoever revokes the last personal key is told how to get a new one', async () => {
  const token = api.strangerToken;
  const first = (await api.call('GET', '/api/v2/api_keys', { token })).json()[0];
  const second = (await api.call('POST', '/api/v2/api_keys', { token, body: { key_name: 'second' } })).json();
  const revoke = async (id: number, by: string) =>
    (await api.call('DELETE', `/api/v2/api_keys/${id}`, { token: by })).json();
  expect(await revoke(first.id, token)).not.toHaveProperty('warning');
  expect((await revoke(second.id, second.key)).warning).toContain('catnap keys recover');
});

describe('keys of an organization', () => {
  test('reach its projects, but nobody’s person', async () => {
    const made = await newKey(orgKeys(), { key_name: 'org' });
    expect(made.project_id).toBeUndefined();
    const as = (method: 'GET' | 'POST', path: string, body?: object) =>
      api.call(method, `/api/v2${path}`, { token: made.key, ...(body === undefined ? {} : { body }) });
    expect((await as('GET', '/projects')).json().projects).toHaveLength(1);
    expect((await as('POST', '/projects', { project: {} })).statusCode).toBe(201);
    expect((await as('GET', '/users/me/organizations')).json().organizations[0].id).toBe(org);
    expect((await as('GET', '/auth')).json()).toMatchObject({ account_id: org, auth_method: 'api_key_org' });
    const forbidden = await as('GET', '/api_keys');
    expect([forbidden.statusCode, forbidden.json().message]).toEqual([403, 'not allowed for organization API keys']);
    expect((await as('GET', '/users/me')).statusCode).toBe(403);
  });

  test('one that is limited to a project reaches that project only, and cannot delete it or make keys', async () => {
    const other = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json().project.id;
    const made = await newKey(orgKeys(), { key_name: 'one project', project_id: project });
    expect(made.project_id).toBe(project);
    const as = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) =>
      api.call(method, `/api/v2${path}`, { token: made.key, ...(body === undefined ? {} : { body }) });
    expect((await as('GET', '/projects')).json().projects.map((p: { id: string }) => p.id)).toEqual([project]);
    expect((await as('GET', `/projects/${project}`)).statusCode).toBe(200);
    expect((await as('POST', `/projects/${project}/branches`)).statusCode).toBe(201);
    expect((await as('GET', `/projects/${other}`)).statusCode).toBe(404);
    expect((await as('DELETE', `/projects/${project}`)).statusCode).toBe(403);
    expect((await as('POST', '/projects', { project: {} })).statusCode).toBe(403);
    expect((await as('POST', '/api_keys', { key_name: 'x' })).statusCode).toBe(403);
    expect((await as('POST', `/organizations/${org}/api_keys`, { key_name: 'x' })).statusCode).toBe(403);
    const listed = (await api.call('GET', orgKeys())).json();
    expect(listed.map((key: { project_id?: string }) => key.project_id)).toContain(project);
    const revoked = (await api.call('DELETE', `${orgKeys()}/${made.id}`)).json();
    expect(revoked).toMatchObject({ revoked: true, project_id: project });
    expect((await as('GET', '/projects')).statusCode).toBe(401);
  });

  test('for a project that is not there', async () => {
    const reply = await api.call('POST', orgKeys(), { body: { key_name: 'x', project_id: 'no-such-project' } });
    expect(reply.statusCode).toBe(404);
  });
});

describe('the caller and the rest', () => {
  test('/users/me has what the Python SDK insists on', async () => {
    const me = (await api.call('GET', '/api/v2/users/me')).json();
    expect(me).toMatchObject({ login: 'admin', name: 'Admin', plan: 'scale' });
    const needed = [
      'state',
      'payment_source',
      'subscription_type',
      'payment_method',
      'quota_reset_at_last',
      'name',
      'email',
    ];
    const address = ['city', 'country', 'line1', 'line2', 'postal_code', 'state'].map((part) => `address_${part}`);
    expect(Object.keys(me.billing_account)).toEqual(expect.arrayContaining([...needed, ...address]));
  });

  test('organization, regions, auth', async () => {
    expect((await api.call('GET', `/api/v2/organizations/${org}`)).json()).toMatchObject({ id: org, name: 'Catnap' });
    expect((await api.call('GET', '/api/v2/organizations/org-of-somebody')).statusCode).toBe(404);
    expect((await api.call('GET', '/api/v2/regions?org_id=org-x')).json().regions).toMatchObject([
      { region_id: 'local', default: true },
    ]);
    expect((await api.call('GET', '/api/v2/auth')).json()).toMatchObject({ auth_method: 'api_key_user' });
  });

  test('uses of a key are reported', async () => {
    const uses: [number, string][] = [];
    const { buildApp } = await import('../app.ts');
    const { Registry } = await import('prom-client');
    const keyUses = { record: (id: number, from: string) => void uses.push([id, from]) };
    const app = await buildApp({ ...api.parts, keyUses, metrics: new Registry() });
    await app.inject({
      url: '/api/v2/auth',
      headers: { authorization: `Bearer ${api.token}` },
      remoteAddress: '192.0.2.9',
    });
    await app.inject({ url: '/api/v2/auth', headers: { authorization: 'Bearer no' } });
    expect(uses).toEqual([[api.caller.keyId, '192.0.2.9']]);
    await app.close();
  });
});
