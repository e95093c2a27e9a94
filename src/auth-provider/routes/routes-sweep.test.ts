/** Every route of the embedded provider, taken from the application itself: unauthenticated, and with hostile input. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  basic,
  makeAuthProvider,
  type ProviderReply,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../../test/helpers/auth-provider.ts';
import { knownCodes } from '../http/errors.ts';

let provider: TestAuthProvider;
let own: ProvisionedProject;
let other: ProvisionedProject;
let tokens: { access_token: string; refresh_token: string; user_id: string };
let ids: Record<string, string>;

beforeAll(async () => {
  provider = await makeAuthProvider();
  own = await provider.provision('own');
  other = await provider.provision('other');
  const body = { email: 'ada@example.com', password: 'correct horse' };
  tokens = (await provider.call('POST', '/auth/password/sign-up', own.client, body)).body;
  await provider.call('POST', '/integrations/neon/domains', own.admin, { domain: 'https://app.example' });
  const sets = (await provider.call('GET', '/integrations/neon/api-keys', own.admin)).body.items;
  ids = { id: tokens.user_id, user_id: tokens.user_id, domain: 'https://app.example', project_id: own.id };
  ids.keySet = sets[0].id;
});
afterAll(() => provider.close());

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
interface Route {
  readonly method: Method;
  readonly url: string;
}

const routes = (): Route[] =>
  provider.app.routeTable
    .filter(
      ({ url, method }) => url.startsWith('/stack/api/v1/') && ['GET', 'POST', 'PATCH', 'DELETE'].includes(method),
    )
    .map(({ url, method }) => ({ url, method: method as Method }));

/** These need no key: key sets are public, and the OAuth endpoints take their client as parameters. */
const isOpen = ({ url }: Route) => /well-known|\/auth\/oauth\//.test(url);

const fill = (url: string, values: Record<string, string>) =>
  url.replace(/:(\w+)/g, (_all, name: string) => {
    const value = url.includes('api-keys') && name === 'id' ? (values.keySet ?? values.id) : values[name];
    return encodeURIComponent(value ?? 'google');
  });

/** All data except when users were last seen. */
async function world(): Promise<string> {
  const tables = await provider.core.database.sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = current_schema() and tablename like 'stack_%' order by 1`;
  const found: string[] = [];
  for (const { name } of tables) {
    const [row] = await provider.core.database.sql`
      select md5(coalesce(string_agg(t::text, '' order by t::text), '')) as digest from ${provider.core.database.sql(name)} t`;
    found.push(`${name} ${row?.digest}`);
  }
  return found.join('\n');
}

function requireRefusal(route: Route, reply: ProviderReply, what: unknown): void {
  const subject = [route.method, route.url, what];
  expect([...subject, reply.status >= 400 && reply.status < 500]).toEqual([...subject, true]);
  const code = reply.headers['x-stack-known-error'];
  if (code === undefined) expect([...subject, typeof reply.body]).toEqual([...subject, 'string']);
  else expect([...subject, reply.body.code, knownCodes.includes(reply.body.code)]).toEqual([...subject, code, true]);
}

describe('strangers', () => {
  test('there is something to sweep, and both versions have it', () => {
    expect(routes().length).toBeGreaterThan(60);
    const latest = provider.app.routeTable.filter(({ url }) => url.startsWith('/stack/api/latest/'));
    const v1 = provider.app.routeTable.filter(({ url }) => url.startsWith('/stack/api/v1/'));
    expect(latest).toHaveLength(v1.length);
  });

  test('without a key reach nothing', async () => {
    const before = await world();
    for (const route of routes().filter((candidate) => !isOpen(candidate))) {
      requireRefusal(route, await provider.call(route.method, fill(route.url, ids), {}), 'no key');
    }
    expect(await world()).toBe(before);
  });

  test('with wrong keys of every kind reach nothing', async () => {
    const before = await world();
    for (const route of routes().filter((candidate) => !isOpen(candidate))) {
      for (const access of ['client', 'server', 'admin']) {
        const wrong = {
          'x-hexclave-access-type': access,
          'x-hexclave-project-id': own.id,
          authorization: 'Basic eDp5',
          'x-hexclave-publishable-client-key': other.publishableKey,
          'x-hexclave-secret-server-key': other.secretKey,
          'x-hexclave-super-secret-admin-key': other.adminKey,
        };
        requireRefusal(route, await provider.call(route.method, fill(route.url, ids), wrong, {}), access);
      }
    }
    expect(await world()).toBe(before);
  });

  test('of another project, with its own good keys, do not reach what has an id here', async () => {
    const before = await world();
    const withId = routes().filter(({ url }) => /:(id|user_id)/.test(url) && !url.includes('oauth-providers'));
    expect(withId.length).toBeGreaterThan(8);
    for (const route of withId) {
      const reply = await provider.call(route.method, fill(route.url, ids), other.admin, {});
      requireRefusal(route, reply, 'other project');
    }
    expect(await world()).toBe(before);
  });
});

/** Every credential there is, so that a refusal is due to the content. */
const everything = () => ({
  ...own.admin,
  ...basic,
  'x-stack-access-token': tokens.access_token,
  'x-stack-refresh-token': tokens.refresh_token,
});

const text = (length: number) => 'x'.repeat(length);

describe('hostile input', () => {
  const bodies: readonly unknown[] = [
    [],
    'text',
    7,
    true,
    null,
    { unknown: 1 },
    { __proto__x: 1, constructor_: {} },
    { email: {}, password: [], code: 1, domain: null, url: 5, id: {} },
    { user_id: 'x', project_id: '../..' },
    { display_name: { $gt: '' }, primary_email: ["' or 1=1 --"], config: 'x', description: 7, grant_type: {} },
    { display_name: text(600_000), description: text(600_000), email: text(600_000), code: text(600_000) },
  ];

  test('bodies of the wrong shape are refused everywhere, and change nothing', async () => {
    const before = await world();
    for (const route of routes().filter(({ method }) => method === 'POST' || method === 'PATCH')) {
      // These two read no body.
      if (/sessions\/current\/refresh|anonymous\/sign-up/.test(route.url)) continue;
      for (const body of bodies) {
        const reply = await provider.app.inject({
          method: route.method,
          url: fill(route.url, ids),
          headers: { ...everything(), 'content-type': 'application/json' },
          payload: JSON.stringify(body),
        });
        const isJson = String(reply.headers['content-type']).startsWith('application/json');
        const seen = { status: reply.statusCode, headers: reply.headers, body: isJson ? reply.json() : reply.body };
        requireRefusal(route, seen, JSON.stringify(body).slice(0, 60));
      }
    }
    expect(await world()).toBe(before);
  });

  test('what is no JSON, or JSON with traps, is refused', async () => {
    const before = await world();
    for (const payload of [
      '{',
      '{"__proto__": {"a": 1}}',
      '{"constructor": {"prototype": {}}}',
      '\u0000',
      '['.repeat(200_000),
    ]) {
      for (const url of ['/stack/api/v1/users', '/stack/api/v1/auth/password/sign-up']) {
        const headers = { ...everything(), 'content-type': 'application/json' };
        const reply = await provider.app.inject({ method: 'POST', url, headers, payload });
        expect([payload.slice(0, 20), reply.statusCode]).toEqual([payload.slice(0, 20), 400]);
      }
    }
    const other = await provider.app.inject({
      method: 'POST',
      url: '/stack/api/v1/users',
      payload: '<a/>',
      headers: { ...everything(), 'content-type': 'application/xml' },
    });
    expect(other.statusCode).toBe(415);
    expect(await world()).toBe(before);
  });

  test('ids that are none are refused, and change nothing', async () => {
    const before = await world();
    const bad = ['%', 'ÄÖÜ', '../..', text(400), ' ', '\0', "';--", '-1', 'null', '\u{1F431}'];
    for (const route of routes().filter(({ url }) => url.includes(':'))) {
      for (const value of bad) {
        const values = { id: value, user_id: value, domain: value, project_id: value, provider: value, keySet: value };
        const reply = await provider.call(route.method, fill(route.url, values), everything(), {});
        // Removing a domain that is not there succeeds; its name cannot be a wrong id.
        if (route.url.endsWith('/domains/:domain') && reply.status === 200) continue;
        requireRefusal(route, reply, value);
      }
    }
    expect(await world()).toBe(before);
  });

  test('headers that are too long, doubled or odd are refused', async () => {
    for (const value of [text(9_000), '\u00ff', ' ', `${own.id}, ${other.id}`, '[object Object]']) {
      const headers = { ...own.server, 'x-stack-project-id': value };
      const reply = await provider.call('GET', '/users', headers);
      expect([value.slice(0, 10), reply.status]).toEqual([value.slice(0, 10), 400]);
    }
  });
});
