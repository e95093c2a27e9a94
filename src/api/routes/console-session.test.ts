/** Signing in to the console: what the cookie opens, and what it does not. */
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { revokePersonalApiKey } from '../../core/api-key.ts';
import { makeConsoleLink } from '../../core/console-session.ts';
import { commandScope } from '../../core/context.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

const own = { 'x-catnap-console': '1', host: 'localhost:7070' };
const browser = { ...own, origin: 'http://localhost:7070', 'sec-fetch-site': 'same-origin' };

const signIn = (body: object, headers: Record<string, string> = browser, remoteAddress = '127.0.0.1') =>
  api.app.inject({ method: 'POST', url: '/console/session', headers, payload: body, remoteAddress });
const cookieOf = (reply: LightMyRequestResponse) => String(reply.headers['set-cookie']).split(';')[0] ?? '';
const signedIn = async () => cookieOf(await signIn({ api_key: api.token }));
const status = async (cookie: string, headers: Record<string, string> = browser, method: 'GET' | 'POST' = 'GET') => {
  const url = method === 'GET' ? '/api/v2/projects' : '/api/v2/projects/no-such/branches';
  return (await api.app.inject({ method, url, headers: { ...headers, cookie } })).statusCode;
};
const makeLink = (token = api.token) =>
  api.core.database.transaction((tx) => makeConsoleLink(commandScope(api.core, tx), token));

describe('a sign-in', () => {
  test('is a cookie that scripts cannot read and other sites cannot send', async () => {
    const reply = await signIn({ api_key: api.token });
    expect(reply.statusCode).toBe(200);
    expect(reply.headers['set-cookie']).toMatch(
      /^catnap_console_7070=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=1209600$/,
    );
    expect(reply.body).not.toContain(api.token);
    expect(await status(cookieOf(reply))).toBe(200);
  });

  test('is kept as a hash, and the key is not kept', async () => {
    const cookie = await signedIn();
    const rows = await api.core.database.sql`select s::text as text from console_sessions s`;
    expect(rows.length).toBeGreaterThan(0);
    const all = JSON.stringify(rows);
    expect(all).not.toContain(cookie.split('=')[1]);
    expect(all).not.toContain(api.token);
  });

  test('says whose key it is', async () => {
    const ask = async (cookie: string) =>
      (await api.app.inject({ url: '/console/session', headers: { ...own, cookie } })).json();
    expect(await ask(await signedIn())).toMatchObject({
      signed_in: true,
      key: { name: 'first key', kind: 'personal', project_id: null },
    });
    expect(await ask('catnap_console_7070=nonsense')).toEqual({ signed_in: false });
  });

  test('needs a key that works', async () => {
    const reply = await signIn({ api_key: 'napi_wrong' });
    expect([reply.statusCode, reply.headers['set-cookie']]).toEqual([401, undefined]);
    for (const body of [{}, { api_key: api.token, link: 'x' }, { api_key: '' }, { api_key: 'x'.repeat(300) }, { a: 1 }])
      expect((await signIn(body)).statusCode).toBe(400);
  });

  test('ends with sign-out, on the server', async () => {
    const cookie = await signedIn();
    const other = await signedIn();
    const reply = await api.app.inject({ method: 'DELETE', url: '/console/session', headers: { ...browser, cookie } });
    expect(reply.headers['set-cookie']).toMatch(/^catnap_console_7070=; .*Max-Age=0$/);
    expect(await status(cookie)).toBe(401);
    expect(await status(other)).toBe(200);
  });

  test('ends when its key is revoked', async () => {
    const made = await api.call('POST', '/api/v2/api_keys', { body: { key_name: 'short' } });
    const cookie = cookieOf(await signIn({ api_key: made.json().key }));
    expect(await status(cookie)).toBe(200);
    await api.core.database.transaction((tx) =>
      revokePersonalApiKey(commandScope(api.core, tx), api.caller, made.json().id),
    );
    expect(await status(cookie)).toBe(401);
  });

  test('ends after its time', async () => {
    const cookie = await signedIn();
    await api.core.database.sql`update console_sessions set expires_at = now() - interval '1 s'`;
    expect(await status(cookie)).toBe(401);
  });

  test('of a key beyond the fiftieth ends the oldest', async () => {
    const cookie = await signedIn();
    await api.core.database.sql`update console_sessions set created_at = now() - interval '1 day'`;
    for (let i = 0; i < 50; i += 1) await signedIn();
    const [count] = await api.core.database.sql`select count(*)::int as count from console_sessions`;
    expect(count).toEqual({ count: 50 });
    expect(await status(cookie)).toBe(401);
  });

  test('by key is not told from a wrong one by a stranger who guesses: he is stopped', async () => {
    const limited = await makeApi({ rateLimitPerMinute: 700 });
    const codes = new Set<number>();
    for (let i = 0; i < 40; i += 1) {
      const reply = await limited.app.inject({
        method: 'POST',
        url: '/console/session',
        headers: browser,
        payload: i % 2 === 0 ? { api_key: `napi_${i}` } : { link: `guess${i}` },
      });
      codes.add(reply.statusCode);
    }
    expect([...codes]).toEqual([401, 429]);
    await limited.close();
  });
});

describe('the cookie counts only for our own pages', () => {
  test.each([
    ['no header of the console', { host: own.host }, 401],
    ['a page of another site', { ...browser, 'sec-fetch-site': 'cross-site' }, 401],
    ['a page of a sibling name', { ...browser, 'sec-fetch-site': 'same-site' }, 401],
    ['an address that somebody typed', { ...browser, 'sec-fetch-site': 'none' }, 401],
    ['another origin', { ...own, origin: 'http://evil.example' }, 401],
    ['another port', { ...own, origin: 'http://localhost:9999' }, 401],
    ['no host that we know', { ...own, host: 'rebound.example', origin: 'http://rebound.invalid' }, 401],
    ['a reverse proxy that changes the host', { ...browser, host: 'inner:80' }, 200],
    ['an opaque origin', { ...own, origin: 'null' }, 401],
    ['our own page', browser, 200],
    ['our own page in an old browser', own, 200],
  ] as const)('%s', async (_name, headers, expected) => {
    const cookie = await signedIn();
    expect(await status(cookie, headers)).toBe(expected);
    expect(await status(cookie, headers, 'POST')).toBe(expected === 200 ? 404 : 401);
  });

  test('nobody else can sign a visitor in or out', async () => {
    const foreign = { ...browser, origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' };
    expect((await signIn({ api_key: api.token }, foreign)).statusCode).toBe(403);
    const cookie = await signedIn();
    const out = await api.app.inject({ method: 'DELETE', url: '/console/session', headers: { ...foreign, cookie } });
    expect(out.statusCode).toBe(403);
    expect(await status(cookie)).toBe(200);
  });

  test('a bearer key that is wrong is not helped by a cookie that is right', async () => {
    const cookie = await signedIn();
    expect(await status(cookie, { ...browser, authorization: 'Bearer napi_wrong' })).toBe(401);
  });
});

describe('a link from the terminal', () => {
  test('signs in once', async () => {
    const link = await makeLink();
    const first = await signIn({ link });
    expect(first.statusCode).toBe(200);
    expect(await status(cookieOf(first))).toBe(200);
    expect((await signIn({ link })).statusCode).toBe(401);
  });

  test('signs in one of two who come at once', async () => {
    const link = await makeLink();
    const replies = await Promise.all([signIn({ link }), signIn({ link })]);
    expect(replies.map((reply) => reply.statusCode).sort()).toEqual([200, 401]);
  });

  test('is made for whoever has a key, and not for a page that is signed in', async () => {
    const ask = (headers: Record<string, string>) =>
      api.app.inject({ method: 'POST', url: '/console/link', headers: { host: own.host, ...headers } });
    const made = await ask({ authorization: `Bearer ${api.token}` });
    expect(made.statusCode).toBe(200);
    const reply = await signIn({ link: made.json().link });
    expect([reply.statusCode, await status(cookieOf(reply))]).toEqual([200, 200]);
    expect((await ask({})).statusCode).toBe(401);
    expect((await ask({ authorization: 'Bearer napi_wrong' })).statusCode).toBe(401);
    expect((await ask({ ...browser, cookie: cookieOf(reply) })).statusCode).toBe(401);
  });

  test('does not work when it is old, is kept as a hash, and needs a key that exists', async () => {
    const link = await makeLink();
    const [row] = await api.core.database.sql`select l::text as text from console_links l`;
    expect(row?.text).not.toContain(link);
    await api.core.database.sql`update console_links set expires_at = now() - interval '1 s'`;
    expect((await signIn({ link })).statusCode).toBe(401);
    expect(await makeLink('napi_nobody')).toBeUndefined();
  });
});

test('over https the cookie is never sent in the clear', async () => {
  const secure = await makeApi({ publicUrl: 'https://catnap.example' });
  const reply = await secure.app.inject({
    method: 'POST',
    url: '/console/session',
    headers: own,
    payload: { api_key: secure.token },
  });
  expect(reply.headers['set-cookie']).toMatch(/; Secure$/);
  await secure.close();
});
