/** Every page and form of the embedded provider, taken from the application itself, attacked by a hostile visitor. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  basic,
  makeAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../../test/helpers/auth-provider.ts';

let provider: TestAuthProvider;
let project: ProvisionedProject;
/** A visitor who is signed in and owns the project, and the mark of their forms. */
let owner: { cookie: string; mark: string };
let nobody: { cookie: string; mark: string };
let transferCode: string;

const script = '<script>alert(1)</script>';
const transferPath = '/integrations/neon/projects/transfer';

beforeAll(async () => {
  provider = await makeAuthProvider();
  nobody = await visitor('/stack/sign-in');
  const order = { mark: nobody.mark, email: 'owner@example.com', password: 'a long password', name: `Ow${script}ner` };
  const cookie = cookieOf(await send('/stack/sign-up', order, { cookie: nobody.cookie }));
  owner = { cookie, mark: markOf((await get('/stack/dashboard', cookie)).body) };
  project = await provider.provision(`Shop ${script}`);
  const confirm = { mark: owner.mark, code: await newCode(project) };
  await send(`/stack${transferPath}/confirm`, confirm, { cookie });
  await provider.call('POST', '/users', project.server, { display_name: script, primary_email: 'u@example.com' });
  transferCode = await newCode(await provider.provision('not yet'));
  // Viewing its page for the first time makes its signing key.
  await get(`/stack/dashboard/projects/${project.id}`, cookie);
});
afterAll(() => provider.close());

async function newCode({ id }: ProvisionedProject): Promise<string> {
  const reply = await provider.call('POST', transferPath, basic, { project_id: id });
  return new URL(reply.body.confirmation_url).searchParams.get('code') ?? '';
}

const get = (url: string, cookie = '') => provider.app.inject({ url, headers: { host: 'localhost', cookie } });
const raw = (url: string, payload: string, headers: Record<string, string>) =>
  provider.app.inject({ method: 'POST', url, headers: { host: 'localhost', ...headers }, payload });
const form = 'application/x-www-form-urlencoded';
const send = (url: string, fields: Record<string, string>, headers: Record<string, string>) =>
  raw(url, new URLSearchParams(fields).toString(), { 'content-type': form, ...headers });
const cookieOf = (reply: Reply) => String(reply.headers['set-cookie']).split(';')[0] ?? '';
const markOf = (text: string) => /name="mark" value="([^"]+)"/.exec(text)?.[1] ?? '';

type Reply = Awaited<ReturnType<typeof get>>;

async function visitor(url: string) {
  const page = await get(url);
  return { cookie: cookieOf(page), mark: markOf(page.body) };
}

const pages = (method: string) =>
  provider.app.routeTable
    .filter(
      (route) => route.method === method && /^\/stack(\/|$)/.test(route.url) && !route.url.startsWith('/stack/api'),
    )
    .filter((route) => route.url !== '/stack/health')
    .map(({ url }) => url.replace(':id', project.id));

/** What each form needs besides its mark. */
const fields = (url: string): Record<string, string> => {
  const known: Record<string, Record<string, string>> = {
    'sign-in': { email: 'owner@example.com', password: 'wrong password' },
    'sign-up': { email: 'owner@example.com', password: 'a long password', name: 'x' },
    'sign-out': {},
    'forgot-password': { email: 'owner@example.com' },
    'reset-password': { code: 'a'.repeat(45), password: 'a long password' },
    confirm: { code: transferCode },
    'make-keys': { description: 'more' },
    'revoke-keys': { id: project.id },
    'add-domain': { domain: 'https://app.example' },
    'remove-domain': { domain: 'https://app.example' },
    'rotate-signing-key': {},
  };
  const found = known[url.split('/').at(-1) ?? ''];
  if (found === undefined) throw new Error(`the sweep knows no fields for ${url}`);
  return found;
};

async function world(): Promise<string> {
  const { sql } = provider.core.database;
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = current_schema() and tablename like 'stack_%' order by 1`;
  const digests = tables.map(async ({ name }) => {
    const [row] = await sql`
      select md5(coalesce(string_agg(t::text, '' order by t::text), '')) as digest from ${sql(name)} t`;
    return `${name} ${row?.digest}`;
  });
  return (await Promise.all(digests)).join('\n');
}

/** For any reply: no failure of ours, no script of theirs that runs, and none that could run if it were there. */
function requireHarmless(what: unknown, reply: Reply): void {
  expect([what, reply.statusCode < 500]).toEqual([what, true]);
  expect([what, reply.body.includes('<script>alert'), reply.body.includes('<img')]).toEqual([what, false, false]);
  if (reply.statusCode === 303) {
    expect([what, String(reply.headers.location)]).toEqual([what, expect.stringMatching(/^\/stack\//)]);
    return;
  }
  expect([what, reply.headers['content-type']]).toEqual([what, 'text/html; charset=utf-8']);
  const policy = String(reply.headers['content-security-policy']);
  expect([what, policy]).toEqual([what, expect.stringMatching(/^default-src 'none'; script-src 'sha256-/)]);
  expect(policy).not.toMatch(/unsafe|\*/);
  expect(reply.headers['x-content-type-options']).toBe('nosniff');
}

const hostile = [
  script,
  '"><img src=x onerror=alert(1)>',
  "' or 1=1 --",
  '\0',
  '../../etc/passwd',
  '//evil.example',
  '%',
];

describe('pages', () => {
  test('there is something to sweep', () => {
    expect(pages('GET').length).toBeGreaterThanOrEqual(7);
    expect(pages('POST').length).toBeGreaterThanOrEqual(11);
  });

  test('show what people have written as text, and take no query for more than it is', async () => {
    const before = await world();
    const long = 'x'.repeat(9_000);
    for (const url of pages('GET')) {
      for (const cookie of [nobody.cookie, 'catnap_stack=;', `catnap_stack=${'x'.repeat(43)}`]) {
        requireHarmless(url, await get(url, cookie));
      }
      for (const cookie of ['', owner.cookie]) {
        for (const value of [...hostile, long]) {
          const given = encodeURIComponent(value);
          const query = ['code', 'next', 'search'].map((name) => `${name}=${given}`).join('&');
          requireHarmless([url, value.slice(0, 30)], await get(`${url}?${query}`, cookie));
        }
        requireHarmless([url, 'twice'], await get(`${url}?code=a&code=b&next=a&next=b&search=a&search=b`, cookie));
      }
    }
    expect(await world()).toBe(before);
    const page = await get(`/stack/dashboard/projects/${project.id}`, owner.cookie);
    expect(page.body).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  });
});

describe('forms', () => {
  test('of other sites, of other people and without a mark change nothing', async () => {
    const before = await world();
    for (const url of pages('POST')) {
      const good = { mark: owner.mark, ...fields(url) };
      const attempts: readonly [Record<string, string>, Record<string, string>][] = [
        [good, { origin: 'https://evil.example' }],
        [good, { origin: 'null' }],
        [good, { origin: 'http://localhost.evil.example' }],
        [good, { 'sec-fetch-site': 'cross-site' }],
        [{ ...good, mark: nobody.mark }, {}],
        [{ ...good, mark: '' }, {}],
      ];
      for (const [body, headers] of attempts) {
        const reply = await send(url, body, { cookie: owner.cookie, ...headers });
        expect([url, headers, reply.statusCode]).toEqual([url, headers, 403]);
        requireHarmless(url, reply);
      }
      const { mark: _gone, ...unmarked } = good;
      expect([url, (await send(url, unmarked, { cookie: owner.cookie })).statusCode]).toEqual([url, 400]);
      // A mark without its cookie belongs to no visitor.
      expect([url, (await send(url, good, {})).statusCode]).toEqual([url, 403]);
    }
    expect(await world()).toBe(before);
  });

  test('in another wrapping, too large or with something added are refused', async () => {
    const before = await world();
    for (const url of pages('POST')) {
      const good = { mark: owner.mark, ...fields(url) };
      const { cookie } = owner;
      const wrapped: readonly [name: string, payload: string, type: string | null][] = [
        ['JSON of the wrong type', JSON.stringify({ ...good, mark: { a: 1 } }), 'application/json'],
        ['no JSON', '{', 'application/json'],
        ['text', new URLSearchParams(good).toString(), 'text/plain'],
        [
          'parts',
          '--x\r\ncontent-disposition: form-data; name="mark"\r\n\r\n1\r\n--x--',
          'multipart/form-data; boundary=x',
        ],
        ['nothing', '', form],
        ['megabytes', `mark=${'x'.repeat(3_000_000)}`, form],
        ['a field more', new URLSearchParams({ ...good, extra: '1' }).toString(), form],
        ['a long mark', new URLSearchParams({ ...good, mark: 'x'.repeat(2_000) }).toString(), form],
      ];
      for (const [name, payload, type] of wrapped) {
        const reply = await raw(url, payload, { cookie, ...(type === null ? {} : { 'content-type': type }) });
        expect([url, name, reply.statusCode >= 400]).toEqual([url, name, true]);
        requireHarmless([url, name], reply);
      }
      for (const field of Object.keys(fields(url))) {
        const { [field]: _gone, ...less } = good as Record<string, string>;
        // An account needs no name.
        if (field !== 'name') {
          expect([url, field, (await send(url, less, { cookie })).statusCode]).toEqual([url, field, 400]);
        }
        const reply = await send(url, { ...good, [field]: 'x'.repeat(5_000) }, { cookie });
        expect([url, field, reply.statusCode]).toEqual([url, field, 400]);
        requireHarmless([url, field], reply);
      }
    }
    expect(await world()).toBe(before);
  });

  test('with hostile values show them as text at most', async () => {
    for (const url of pages('POST').filter((each) => !/sign-out|rotate|make-keys/.test(each))) {
      for (const field of [...Object.keys(fields(url)), 'next']) {
        if (field === 'next' && !/sign-(in|up)$/.test(url)) continue;
        for (const value of hostile) {
          const body = { mark: owner.mark, ...fields(url), [field]: value };
          requireHarmless([url, field, value], await send(url, body, { cookie: owner.cookie }));
        }
      }
    }
    const made = { mark: owner.mark, description: script };
    requireHarmless('keys', await send(`/stack/dashboard/projects/${project.id}/make-keys`, made, owner));
    expect((await get(`/stack/dashboard/projects/${project.id}`, owner.cookie)).body).toContain('&lt;script&gt;');
    const domains = await provider.call('GET', '/integrations/neon/domains', project.admin);
    expect(domains.body.items).toEqual([]);
    const current = await provider.call('POST', `${transferPath}/confirm/check`, internal, { code: transferCode });
    expect(current.body).toEqual({ is_code_valid: true });
  });
});

const internal = { 'x-stack-access-type': 'client', 'x-stack-project-id': 'internal' };
