import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../test/helpers/contract.ts';
import { buildApp } from './app.ts';
import type { RouteFacts } from './plugins/route-table.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

test('health and readiness', async () => {
  expect((await api.call('GET', '/healthz', { token: null })).json()).toEqual({ status: 'ok' });
  expect((await api.call('GET', '/readyz', { token: null })).json()).toEqual({ status: 'ok' });
});

test('readiness fails while the system database does not answer', async () => {
  const other = await makeApi();
  await other.core.database.close();
  const reply = await other.call('GET', '/readyz', { token: null });
  expect(reply.statusCode).toBe(503);
  expect((await other.call('GET', '/healthz', { token: null })).statusCode).toBe(200);
  await other.close();
});

test('metrics are for this machine, or for a key of the operator', async () => {
  await api.call('GET', '/api/v2/projects/some-id');
  const here = await api.app.inject('/metrics');
  expect(here.headers['content-type']).toContain('text/plain');
  expect(here.body).toContain(
    'catnap_http_requests_total{route="/api/v2/projects/:project_id",method="GET",status="404"} 1',
  );
  expect(here.body).toContain('catnap_http_request_duration_seconds_bucket');
  expect(here.body).toContain('process_cpu_seconds_total');
  const from = (remoteAddress: string, headers: Record<string, string> = {}) =>
    api.app.inject({ url: '/metrics', remoteAddress, headers });
  expect((await from('192.0.2.1')).statusCode).toBe(401);
  expect((await from('192.0.2.1', { authorization: `Bearer ${api.token}` })).statusCode).toBe(200);
  const orgId = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
  const body = { key_name: 'a tenant' };
  const { key } = (await api.call('POST', `/api/v2/organizations/${orgId}/api_keys`, { body })).json();
  expect((await from('192.0.2.1', { authorization: `Bearer ${key}` })).statusCode).toBe(403);
  expect((await from('::1')).statusCode).toBe(200);
  expect((await from('::ffff:127.0.0.1')).statusCode).toBe(200);
  expect((await from('127.0.0.1', { 'x-forwarded-for': '192.0.2.1' })).statusCode).toBe(401);
  // A page of another site whose name was pointed at this machine.
  for (const host of ['rebound.example:7070', '127.rebound.example', 'localhost.rebound.example']) {
    expect([host, (await from('127.0.0.1', { host })).statusCode]).toEqual([host, 401]);
  }
  for (const host of ['localhost:7070', '127.0.0.1:7070', '[::1]:7070']) {
    expect([host, (await from('127.0.0.1', { host })).statusCode]).toEqual([host, 200]);
  }
});

test('a bookmark of the old status page leads to the console', async () => {
  const reply = await api.app.inject('/status');
  expect([reply.statusCode, reply.headers.location]).toEqual([302, '/about']);
  const page = await api.app.inject(String(reply.headers.location));
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/);
});

test('the status of the installation is for this machine, or for a key', async () => {
  await api.call('POST', '/api/v2/projects', { body: { project: {} } });
  const brief = { name: 'catnap', version: '0.0.0-test' };
  const full = { ...brief, counts: { projects: 1, endpoints: { init: 1, active: 0, idle: 0 } } };
  const ask = async (headers: Record<string, string> = {}, remoteAddress = '127.0.0.1') =>
    (
      await api.app.inject({ url: '/status.json', headers: { host: 'localhost:7070', ...headers }, remoteAddress })
    ).json();
  expect(await ask()).toMatchObject(full);
  expect(await ask({}, '192.0.2.1')).toEqual(brief);
  expect(await ask({ authorization: `Bearer ${api.token}` }, '192.0.2.1')).toMatchObject(full);
  expect(await ask({ 'x-forwarded-for': '192.0.2.1' })).toEqual(brief);
  expect(await ask({ host: 'rebound.example' })).toEqual(brief);
  const config = { ...api.parts.config, bind: '0.0.0.0' };
  const open = await buildApp({ ...api.parts, config, metrics: new Registry() });
  expect((await open.inject('/status.json')).json()).toEqual(brief);
  await open.close();
});

test('the status of the installation is sent as it is, also where something is not known', async () => {
  const config = { ...api.parts.config, storageMethod: null };
  const app = await buildApp({ ...api.parts, config, metrics: new Registry() });
  expect((await app.inject({ url: '/status.json', headers: { host: 'localhost' } })).json()).toEqual({
    name: 'catnap',
    version: '0.0.0-test',
    driver: config.driver,
    region_id: config.region,
    pg_versions: config.pgVersions,
    api_url: 'http://localhost:7070/api/v2',
    database_port: config.pgPort,
    limits_enforced: true,
    storage_method: null,
    temporary_disk_enforcement: 'session',
    counts: { projects: 1, endpoints: { init: 1, active: 0, idle: 0 } },
  });
  await app.close();
});

test('the API describes itself: every operation has a name, a tag and words', async () => {
  const reply = await api.app.inject('/api/v2/openapi.json');
  const document = reply.json();
  expect(document.openapi).toBe('3.1.0');
  expect(document.servers).toEqual([{ url: 'http://localhost:7070/api/v2' }]);
  const tags = document.tags.map((tag: { name: string }) => tag.name);
  const ids = new Set<string>();
  for (const [path, item] of Object.entries<Record<string, Record<string, unknown>>>(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const { operationId, summary, description } = operation;
      expect([path, method, typeof operationId, typeof summary, typeof description]).toEqual([
        path,
        method,
        'string',
        'string',
        'string',
      ]);
      expect(tags).toEqual(expect.arrayContaining(operation.tags as string[]));
      ids.add(String(operationId));
    }
  }
  // What is not offered, or is never found, is left out.
  const isDescribed = ({ isPublic, method, notOffered, absent }: RouteFacts) =>
    !isPublic && method !== 'HEAD' && !notOffered && absent !== 'thing';
  expect(ids.size).toBe(api.app.routeTable.filter(isDescribed).length);
  const references = [...reply.body.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]);
  expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining([...new Set(references)]));
});

test('an address that does not exist is a page of the console for people, and an error of the API for programs', async () => {
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
  const page = await api.app.inject({ url: '/nowhere', headers: { accept } });
  expect([page.statusCode, page.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
  expect(page.headers['content-security-policy']).toContain("script-src 'self'");
  for (const url of ['/api/v2/nowhere', '/assets/nowhere.js']) {
    const reply = await api.app.inject({ url, headers: { accept } });
    expect([url, reply.statusCode, reply.headers['content-type']]).toEqual([url, 404, expect.stringContaining('json')]);
  }
  const program = await api.app.inject({ url: '/nowhere', headers: { accept: '*/*' } });
  expect(program.json()).toMatchObject({ message: 'path not found' });
});

test('the reference page asks only for the document', async () => {
  const reply = await api.app.inject('/api/v2/docs');
  expect(reply.headers['content-security-policy']).toContain("connect-src 'self'");
  expect(reply.body).not.toMatch(/https?:\/\//);
});
