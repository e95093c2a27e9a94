/**
 * Every registered route, taken from the application itself, so that there is no list to maintain: without a key, with
 * a key from elsewhere, with ids that are not there, and with ids that are none. A route added tomorrow is swept too.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addressOf, publishedOperations } from '../../scripts/published-api.mjs';
import type { RouteFacts } from '../../src/api/plugins/route-table.ts';
import { makeApi, type TestApi, validateReply } from '../helpers/contract.ts';
import { insertDelivery } from '../helpers/webhooks.ts';

let api: TestApi;
let own: Record<string, string>;
let otherProjectToken: string;
let orgId: string;
let document: OpenApi;

beforeAll(async () => {
  api = await makeApi();
  document = (await api.app.inject('/api/v2/openapi.json')).json();
  const post = async (path: string, body: object) => (await api.call('POST', `/api/v2${path}`, { body })).json();
  orgId = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
  const made = await post('/projects', { project: {} });
  const other = await post('/projects', { project: {} });
  const key = await post(`/organizations/${orgId}/api_keys`, { key_name: 'kept' });
  otherProjectToken = (await post(`/organizations/${orgId}/api_keys`, { key_name: 'o', project_id: other.project.id }))
    .key;
  const jwks = { jwks_url: 'https://keys.test/jwks.json', provider_name: 'test', skip_role_creation: true };
  const keySet = await post(`/projects/${made.project.id}/jwks`, jwks);
  const taken = await post(`/projects/${made.project.id}/branches/${made.branch.id}/snapshot`, {});
  const saved = await post(`/projects/${made.project.id}/saved_queries`, { saved_query: { name: 'a', query: '' } });
  const hook = { url: 'https://hooks.test/', events: ['operation.ended'] };
  const { webhook } = await post(`/projects/${made.project.id}/webhooks`, { webhook: hook });
  own = {
    webhook_id: webhook.id,
    delivery_id: await insertDelivery(api, webhook.id),
    saved_query_id: saved.saved_query.id,
    session_id: '1.1',
    snapshot_id: taken.snapshot.id,
    jwks_id: keySet.jwks.id,
    project_id: made.project.id,
    branch_id: made.branch.id,
    endpoint_id: made.endpoints[0].id,
    operation_id: made.operations[0].id,
    database_name: made.databases[0].name,
    role_name: made.roles[0].name,
    org_id: orgId,
    key_id: String(key.id),
    auth_provider: 'stack',
    auth_user_id: '00000000-0000-4000-8000-000000000000',
    oauth_provider_id: 'google',
    source_org_id: orgId,
    member_id: (await api.call('GET', '/api/v2/users/me')).json().id,
  };
});
afterAll(() => api.close());

type Method = Parameters<TestApi['call']>[0];
const methods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const isMethod = (method: string): method is Method => methods.includes(method);

/** The path with its parameters filled in; a parameter that nobody knows a value for fails the sweep. */
function fill({ url, notOffered }: RouteFacts, values: Record<string, string>): string {
  return url.replace(/:(\w+)/g, (_all, name: string) => {
    // Of what Catnap does not offer there is nothing that a value could name.
    const value = values[name] ?? (notOffered === undefined ? undefined : 'any');
    if (value === undefined) throw new Error(`the sweep knows no value for :${name} of ${url}`);
    return encodeURIComponent(value);
  });
}

/** A body that the route's schema takes, read from the OpenAPI document. */
function sampleBody(route: RouteFacts): object | undefined {
  const path = route.url.replace('/api/v2', '').replace(/:(\w+)/g, '{$1}');
  const schema = document.paths[path]?.[route.method.toLowerCase()]?.requestBody?.content['application/json'].schema;
  return schema === undefined ? undefined : (sample(schema) as object);
}

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface OpenApi {
  readonly paths: Record<
    string,
    Record<string, { requestBody?: { content: { 'application/json': { schema: Schema } } } }>
  >;
}

function sample(schema: Schema): unknown {
  if (schema.enum) return schema.enum[0];
  if (schema.type === 'array') return [sample(schema.items ?? {})];
  if (schema.type !== 'object') return schema.type === 'string' ? 'sample' : 1;
  return Object.fromEntries((schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]));
}

/** What a route cannot do without. */
function queryOf(url: string): string {
  if (url.endsWith('/connection_uri')) return '?database_name=neondb&role_name=neondb_owner';
  return url.endsWith('schema') ? '?db_name=neondb' : '';
}

async function send(route: RouteFacts, values: Record<string, string>, token: string | null) {
  if (!isMethod(route.method)) throw new Error(`the sweep does not know the method ${route.method}`);
  const body = sampleBody(route);
  const path = `${fill(route, values)}${queryOf(route.url)}`;
  return api.call(route.method, path, { token, ...(body === undefined ? {} : { body }) });
}

const guarded = () => api.app.routeTable.filter((route) => !route.isPublic);
const withProject = () => guarded().filter((route) => route.url.includes(':project_id'));
const withOrganization = () => guarded().filter((route) => /:(source_)?org_id/.test(route.url));
const named = (route: RouteFacts) => `${route.method} ${route.url}`;

describe('who may call', () => {
  test('there is something to sweep, and only these are public', () => {
    expect(guarded().length).toBeGreaterThan(40);
    // The embedded provider knows its callers in its own way, and has a sweep of its own.
    const open = api.app.routeTable
      .filter((route) => route.isPublic && route.method === 'GET' && !route.url.startsWith('/stack'))
      .map((route) => route.url);
    expect(open.sort()).toEqual(
      [
        '/api/v2/docs',
        '/api/v2/openapi.json',
        '/healthz',
        '/metrics',
        '/readyz',
        '/status',
        '/status.json',
        '/',
        '/about',
        '/deleted',
        '/keys',
        '/organization',
        '/psql',
        '/projects',
        '/projects/*',
        '/assets/:name',
        '/console/session',
        '/v2',
      ].sort(),
    );
  });

  test('without a key every route is a 401', async () => {
    for (const route of guarded()) {
      const reply = await send(route, own, null);
      expect([named(route), reply.statusCode]).toEqual([named(route), 401]);
    }
  });

  test('a person of another organization sees none of it', async () => {
    for (const route of [...withProject(), ...withOrganization()]) {
      const reply = await send(route, own, api.strangerToken);
      expect([named(route), reply.statusCode]).toEqual([named(route), 404]);
    }
  });

  test('a key of another project sees nothing of this one, and nothing of the organization’s keys', async () => {
    for (const route of withProject()) {
      const reply = await send(route, own, otherProjectToken);
      expect([named(route), reply.statusCode]).toEqual([named(route), 404]);
    }
    for (const route of withOrganization().filter((candidate) => candidate.url.includes('api_keys'))) {
      const reply = await send(route, own, otherProjectToken);
      expect([named(route), reply.statusCode]).toEqual([named(route), 403]);
    }
  });

  test('nothing was changed by any of that', async () => {
    const path = `/api/v2/projects/${own.project_id}`;
    expect((await api.call('GET', path)).statusCode).toBe(200);
    expect((await api.call('GET', `${path}/operations`)).json().operations).toHaveLength(3);
    expect((await api.call('GET', `/api/v2/organizations/${orgId}/api_keys`)).json()).toHaveLength(2);
  });
});

describe('ids', () => {
  /** For each parameter: well formed, but of nothing. */
  const missing: Record<string, string> = {
    project_id: 'no-project-1',
    branch_id: 'br-no-branch-1',
    endpoint_id: 'ep-no-endpoint-1',
    operation_id: '00000000-0000-4000-8000-000000000000',
    database_name: 'no such database',
    role_name: 'no such role',
    org_id: 'org-none-1',
    key_id: '9007199254740991',
    auth_provider: 'none',
    auth_user_id: '00000000-0000-4000-8000-000000000001',
    oauth_provider_id: 'none',
    source_org_id: 'org-none-1',
    member_id: '00000000-0000-4000-8000-000000000002',
    jwks_id: '00000000-0000-4000-8000-000000000002',
    snapshot_id: 'snap-no-snapshot-1',
    saved_query_id: 'query-none',
    webhook_id: 'hook-none',
    delivery_id: '00000000-0000-4000-8000-000000000003',
    session_id: '2.2',
  };
  /** A route that answers 501 looks at these first, and at nothing behind them. */
  const owners = ['project_id', 'branch_id', 'org_id', 'source_org_id'];
  const isRead = (route: RouteFacts, name: string) => route.notOffered === undefined || owners.includes(name);
  const bad = ['%', 'ÄÖÜ', '../..', 'a'.repeat(300), ' ', '\0', "';--", '-1', '1e9', 'null', '\u{1F431}'];

  test('of nothing are a 404, each parameter in its turn', async () => {
    for (const route of guarded()) {
      for (const [, name = ''] of route.url.matchAll(/:(\w+)/g)) {
        const reply = await send(route, { ...own, [name]: missing[name] ?? 'none' }, api.token);
        expect([named(route), name, reply.statusCode]).toEqual([named(route), name, isRead(route, name) ? 404 : 501]);
      }
    }
  });

  test('that are none are a 4xx, never a 500', async () => {
    // One function answers for everything that is not offered, so a part of it is enough.
    const tried = guarded().filter((route) => route.notOffered === undefined || route.method === 'PATCH');
    for (const route of tried) {
      for (const [, name = ''] of route.url.matchAll(/:(\w+)/g)) {
        for (const value of bad) {
          const { statusCode } = await send(route, { ...own, [name]: value }, api.token);
          const allowed = isRead(route, name) ? [400, 404] : [501];
          expect([named(route), name, value, allowed.includes(statusCode)]).toEqual([named(route), name, value, true]);
        }
      }
    }
  });

  test('of one project do not work in another', async () => {
    const other = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
    const foreign = { ...own, project_id: other.project.id };
    const nested = withProject().filter((route) =>
      /:(branch|endpoint|operation|snapshot|saved_query|webhook)_id/.test(route.url),
    );
    for (const route of nested) {
      const reply = await send(route, foreign, api.token);
      expect([named(route), reply.statusCode]).toEqual([named(route), 404]);
    }
  });
});

describe('bodies', () => {
  const bodies = [
    [],
    null,
    'text',
    7,
    { unknown: 1 },
    { project: [], branch: 1, endpoint: 'x', role: null, database: {} },
  ];

  test('of the wrong shape are a 400 where a body is read, and harmless elsewhere', async () => {
    for (const route of guarded().filter((candidate) => ['POST', 'PATCH', 'PUT'].includes(candidate.method))) {
      if (sampleBody(route) === undefined) continue;
      for (const body of bodies) {
        const reply = await api.app.inject({
          method: route.method as 'POST',
          url: fill(route, own),
          headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' },
          payload: JSON.stringify(body),
        });
        expect([named(route), body, reply.statusCode]).toEqual([named(route), body, 400]);
        expect(reply.json().message).toMatch(/^invalid request: body/);
      }
    }
  });
});

test('the referee refuses a reply that lacks a required key, has a wrong type or an unpublished status', async () => {
  const url = '/api/v2/regions';
  const region = { region_id: 'a', name: 'a', default: true, geo_lat: '', geo_long: '' };
  expect(() => validateReply('GET', url, 200, { regions: [region] })).not.toThrow();
  expect(() => validateReply('GET', url, 200, {})).toThrow(
    "GET /regions -> 200: the reply must have required property 'regions'",
  );
  expect(() => validateReply('GET', url, 200, { regions: [{ ...region, default: 1 }] })).toThrow(
    '/regions/0/default must be boolean',
  );
  expect(() => validateReply('GET', url, 202, { regions: [] })).toThrow('no such status');
  expect(() => validateReply('GET', url, 404, { message: 'x' })).toThrow("must have required property 'code'");
  expect(() => validateReply('GET', '/api/v2/unheard/of', 200, {})).toThrow('neither in the published API');
});

test('every route of ours is one of the published API, by path and method, or a known addition', () => {
  const published = new Set(publishedOperations().map(addressOf));
  const unknown = guarded()
    .filter((route) => route.method !== 'HEAD')
    .map(({ method, url }) => addressOf({ method, path: url.replace('/api/v2', '') }))
    .filter((name) => !published.has(name));
  expect(unknown.sort()).toEqual([
    'DELETE /projects/{}/saved_queries/{}',
    'DELETE /projects/{}/webhooks/{}',
    'GET /backup',
    'GET /deleted',
    'GET /events',
    'GET /outbox',
    'GET /projects/{}/branches/{}/history',
    'GET /projects/{}/branches/{}/role_verifiers',
    'GET /projects/{}/endpoints/{}/logs',
    'GET /projects/{}/endpoints/{}/metrics',
    'GET /projects/{}/endpoints/{}/sessions',
    'GET /projects/{}/extensions',
    'GET /projects/{}/saved_queries',
    'GET /projects/{}/webhooks',
    'GET /projects/{}/webhooks/{}/deliveries',
    'PATCH /organizations/{}',
    'PATCH /projects/{}/saved_queries/{}',
    'PATCH /projects/{}/webhooks/{}',
    'POST /projects/{}/branches/{}/purge',
    'POST /projects/{}/branches/{}/roles/{}/reveal_password',
    'POST /projects/{}/branches/{}/set_as_primary',
    'POST /projects/{}/endpoints/{}/sessions/{}/cancel',
    'POST /projects/{}/endpoints/{}/sessions/{}/terminate',
    'POST /projects/{}/purge',
    'POST /projects/{}/saved_queries',
    'POST /projects/{}/webhooks',
    'POST /projects/{}/webhooks/{}/deliveries/{}/replay',
  ]);
});
