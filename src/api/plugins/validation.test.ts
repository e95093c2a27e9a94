/** Every refusal names the field and what is allowed there. */
import { Ajv } from 'ajv';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { buildApp } from '../app.ts';
import { sharedSchemas } from '../schemas/shared-schemas.ts';
import { coerceValues } from './validation.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

const long = (length: number) => 'x'.repeat(length);
const branchPath = '/api/v2/projects/p/branches';
const databasePath = `${branchPath}/br-a/databases`;

type Row = readonly [path: string, body: object, message: string];
const project = (fields: object, message: string): Row => ['/api/v2/projects', { project: fields }, message];
const endpoint = (fields: object, message: string): Row => [
  '/api/v2/projects/p/endpoints',
  { endpoint: { branch_id: 'br-a', type: 'read_write', ...fields } },
  message,
];
const branch = (fields: object, message: string): Row => [branchPath, { branch: fields }, message];

const rows: readonly Row[] = [
  ['/api/v2/projects', {}, 'body.project (field required)'],
  ['/api/v2/projects', { project: {}, other: 1 }, 'body.other is not a known attribute'],
  ['/api/v2/projects', { project: null }, 'body.project must be an object'],
  ['/api/v2/projects', [], 'body must be an object'],
  project({ pg_version: 16 }, 'body.project.pg_version must be one of 17, 18'),
  project({ pg_version: '17' }, 'body.project.pg_version must be one of 17, 18'),
  project({ name: '' }, 'body.project.name must be 1 to 256 characters'),
  project({ name: long(257) }, 'body.project.name must be 1 to 256 characters'),
  project({ name: ' \t' }, 'body.project.name must not be blank'),
  project({ name: null }, 'body.project.name must be a string'),
  project({ name: 5 }, 'body.project.name must be a string'),
  project({ name: 'a\0b' }, 'body.project.name must not contain NUL or unpaired surrogate characters'),
  project({ name: 'a\ud800' }, 'body.project.name must not contain NUL or unpaired surrogate characters'),
  project({ colour: 'red' }, 'body.project.colour is not a known attribute'),
  project({ [long(100)]: 1 }, `body.project.${long(80)}… is not a known attribute`),
  project({ org_id: 'Not An Id' }, 'body.project.org_id must be an id: 1 to 60 of a-z, 0-9 and -'),
  project({ store_passwords: 'true' }, 'body.project.store_passwords must be true or false'),
  project({ history_retention_seconds: -1 }, 'body.project.history_retention_seconds must be 0 to 2592000'),
  project({ history_retention_seconds: 1.5 }, 'body.project.history_retention_seconds must be a whole number'),
  project({ branch: { database_name: long(64) } }, 'body.project.branch.database_name must be 1 to 63 characters'),
  project({ branch: { annotations: { a: 1 } } }, 'body.project.branch.annotations.a must be a string'),
  project({ branch: { annotations: { 'a\nb': 1 } } }, 'body.project.branch.annotations.a\nb must be a string'),
  project(
    { branch: { annotations: { 'a\0b': '1' } } },
    'a key of body.project.branch.annotations must not contain NUL or unpaired surrogate characters',
  ),
  project(
    { branch: { annotations: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, ''])) } },
    'body.project.branch.annotations must have at most 50 entries',
  ),
  project(
    { settings: { allowed_ips: { ips: ['1.2.3.4', 7] } } },
    'body.project.settings.allowed_ips.ips[1] must be a string',
  ),
  project(
    { settings: { allowed_ips: { ips: ['10.0.0.0/33'] } } },
    'body.project.settings.allowed_ips.ips[0] must be an IP address, a CIDR block such as 10.0.0.0/8, or a range such as 10.0.0.1-10.0.0.9',
  ),
  project(
    { settings: { audit_log_level: 'all' } },
    'body.project.settings.audit_log_level must be one of base, extended, full',
  ),
  project(
    { settings: { maintenance_window: { weekdays: [8], start_time: '06:00', end_time: '07:00' } } },
    'body.project.settings.maintenance_window.weekdays[0] must be 1 to 7',
  ),
  project(
    { settings: { maintenance_window: { weekdays: [1], start_time: '6', end_time: '07:00' } } },
    'body.project.settings.maintenance_window.start_time must be a time of day as HH:MM',
  ),
  project(
    { settings: { maintenance_window: { weekdays: [1, 1], start_time: '06:00', end_time: '07:00' } } },
    'body.project.settings.maintenance_window.weekdays must not have the same item twice',
  ),
  project(
    { settings: { maintenance_window: { weekdays: [], start_time: '06:00', end_time: '07:00' } } },
    'body.project.settings.maintenance_window.weekdays must have 1 to 7 items',
  ),
  project(
    { settings: { maintenance_window: { weekdays: [1], start_time: '06:00', end_time: '06:00' } } },
    'body.project.settings.maintenance_window.end_time must differ from start_time; an earlier time is one of the next day',
  ),
  project(
    { settings: { quota: { logical_size_bytes: -1 } } },
    'body.project.settings.quota.logical_size_bytes must be 0 to 9007199254740991',
  ),
  project(
    { default_endpoint_settings: { pg_settings: { work_mem: 4 } } },
    'body.project.default_endpoint_settings.pg_settings.work_mem must be a string',
  ),
  project(
    { default_endpoint_settings: { suspend_timeout_seconds: 604_801 } },
    'body.project.default_endpoint_settings.suspend_timeout_seconds must be -1 to 604800',
  ),
  endpoint({ foo: 1 }, 'body.endpoint.foo is not a known attribute'),
  endpoint({ type: 'write_only' }, 'body.endpoint.type must be one of read_write, read_only'),
  endpoint({ type: undefined }, 'body.endpoint.type (field required)'),
  endpoint({ suspend_timeout_seconds: -2 }, 'body.endpoint.suspend_timeout_seconds must be -1 to 604800'),
  endpoint({ autoscaling_limit_min_cu: 0.1 }, 'body.endpoint.autoscaling_limit_min_cu must be 0.25 to 56'),
  endpoint({ pooler_mode: 'session' }, 'body.endpoint.pooler_mode must be one of transaction'),
  endpoint({ name: long(65) }, 'body.endpoint.name must be 1 to 64 characters'),
  endpoint({ settings: { preload: {} } }, 'body.endpoint.settings.preload is not a known attribute'),
  branch({ parent_lsn: 'x' }, 'body.branch.parent_lsn must be a log position such as 0/1DE2850'),
  branch({ expires_at: 'soon' }, 'body.branch.expires_at must be a time such as 2026-01-31T12:00:00Z'),
  branch({ expires_at: null }, 'body.branch.expires_at must be a string'),
  branch({ init_source: 'air' }, 'body.branch.init_source must be one of parent-data, schema-only'),
  [branchPath, { endpoints: [{}] }, 'body.endpoints[0].type (field required)'],
  [branchPath, { endpoints: [{ type: 'read_write', name: 'x' }] }, 'body.endpoints[0].name is not a known attribute'],
  [branchPath, { endpoints: Array(21).fill({ type: 'read_write' }) }, 'body.endpoints must have at most 20 items'],
  [databasePath, { database: { name: 'a' } }, 'body.database.owner_name (field required)'],
  [`${branchPath}/br-a/roles`, { role: { name: '' } }, 'body.role.name must be 1 to 63 characters'],
  ['/api/v2/api_keys', { key_name: long(65) }, 'body.key_name must be 1 to 64 characters'],
  [
    '/api/v2/organizations/org-a/api_keys',
    { key_name: 'a', project_id: '' },
    'body.project_id must be an id: 1 to 60 of a-z, 0-9 and -',
  ],
];

describe('bodies', () => {
  test.each(rows)('%s %j', async (path, body, message) => {
    const reply = await api.call('POST', path, { body });
    expect([reply.statusCode, reply.json().message]).toEqual([400, `invalid request: ${message}`]);
    expect(reply.json().code).toBe('');
  });
});

describe('paths and queries', () => {
  test.each([
    ['/api/v2/projects?limit=0', 'query.limit must be 1 to 400'],
    ['/api/v2/projects?limit=401', 'query.limit must be 1 to 400'],
    ['/api/v2/projects?limit=ten', 'query.limit must be a whole number'],
    ['/api/v2/projects?limit=1&limit=2', 'query.limit must be a whole number'],
    ['/api/v2/projects?recoverable=perhaps', 'query.recoverable must be true or false'],
    ['/api/v2/projects?search=%00', 'query.search must not contain NUL or unpaired surrogate characters'],
    ['/api/v2/projects/UPPER', 'path.project_id must be an id: 1 to 60 of a-z, 0-9 and -'],
    ['/api/v2/projects/p/operations/1', 'path.operation_id must be a UUID'],
    ['/api/v2/projects/p/operations?cursor=now', 'query.cursor must be one that a reply to this list has given'],
    ['/api/v2/projects/p/connection_uri?role_name=r', 'query.database_name (field required)'],
    ['/api/v2/projects/p/branches?sort_by=age', 'query.sort_by must be one of name, created_at, updated_at'],
    ['/api/v2/projects/p/branches?limit=10001', 'query.limit must be 1 to 10000'],
    [
      '/api/v2/projects/p/branches/br-a/roles/%00',
      'path.role_name must not contain NUL or unpaired surrogate characters',
    ],
  ])('%s', async (path, message) => {
    const reply = await api.call('GET', path);
    expect([reply.statusCode, reply.json().message]).toEqual([400, `invalid request: ${message}`]);
  });

  test('the number of a key', async () => {
    const reply = await api.call('DELETE', '/api/v2/api_keys/first');
    expect(reply.json().message).toBe('invalid request: path.key_id must be a whole number');
    expect((await api.call('DELETE', '/api/v2/api_keys/99999999999999999999')).statusCode).toBe(400);
    expect((await api.call('DELETE', '/api/v2/api_keys/9007199254740991')).statusCode).toBe(404);
  });

  test('unknown parameters are ignored, empty ones are not given', async () => {
    expect((await api.call('GET', '/api/v2/projects?colour=red&limit=&cursor=')).statusCode).toBe(200);
  });

  test('forged branch cursors are a 400', async () => {
    const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
    const good = {
      branch_id: 'br-a',
      sort_by: 'updated_at',
      sort_by_value: '2026-01-01 00:00:00.5+00',
      sort_order: 'DESC',
    };
    const forged: unknown[] = [
      7,
      {},
      { ...good, branch_id: 'a\0b' },
      { ...good, sort_by: 'name' },
      { ...good, sort_order: 'ASC' },
      { ...good, sort_by_value: '2026-02-30 00:00:00+00' },
      { ...good, sort_by_value: '2026-01-01 00:00:00+15' },
      { ...good, sort_by_value: 'infinity' },
    ];
    const ask = (cursor: unknown) => {
      const text = Buffer.from(JSON.stringify(cursor)).toString('base64url');
      return api.call('GET', `/api/v2/projects/${made.project.id}/branches?cursor=${text}`);
    };
    expect((await ask(good)).statusCode).toBe(200);
    for (const cursor of forged) expect((await ask(cursor)).statusCode).toBe(400);
    const noBase64 = await api.call('GET', `/api/v2/projects/${made.project.id}/branches?cursor=%7B`);
    expect(noBase64.statusCode).toBe(400);
  });
});

test('query texts become what the schema asks for, and nothing else changes', () => {
  const schema = {
    properties: {
      limit: { type: 'integer' },
      pooled: { type: 'boolean' },
      other: { type: 'boolean' },
      ids: { type: 'array', items: { type: 'string' } },
      sizes: { type: 'array', items: { type: 'number' } },
      name: { type: 'string' },
      gone: { type: 'string' },
    },
  };
  for (const [truth, lie] of [
    ['true', 'false'],
    ['True', 'False'],
    ['TRUE', 'FALSE'],
    ['1', '0'],
  ]) {
    const values = {
      limit: '10',
      pooled: truth,
      other: lie,
      ids: 'a,b',
      sizes: '1,0.5',
      name: '7',
      gone: '',
      extra: '1',
    };
    coerceValues(values, schema);
    expect(values).toEqual({
      limit: 10,
      pooled: true,
      other: false,
      ids: ['a', 'b'],
      sizes: [1, 0.5],
      name: '7',
      extra: '1',
    });
  }
  const odd = { limit: '0x10', pooled: 'yes' };
  coerceValues(odd, schema);
  expect(odd).toEqual({ limit: '0x10', pooled: 'yes' });
});

test('the schemas of all routes are JSON schemas, which is not checked at a start', async () => {
  const shapes: object[] = [...sharedSchemas];
  const app = await buildApp({ ...api.parts, metrics: new Registry() }, (instance) =>
    instance.addHook('onRoute', ({ schema }) => {
      const { body, querystring, params, headers, response } = schema ?? {};
      const replies = Object.values((response as Record<string, object> | undefined) ?? {});
      for (const shape of [body, querystring, params, headers, ...replies]) {
        if (typeof shape === 'object' && shape !== null) shapes.push(shape);
      }
    }),
  );
  await app.ready();
  const ajv = new Ajv({ strict: false, logger: false });
  expect(shapes.length).toBeGreaterThan(200);
  expect(shapes.filter((shape) => ajv.validateSchema(shape) !== true)).toEqual([]);
  await app.close();
});
