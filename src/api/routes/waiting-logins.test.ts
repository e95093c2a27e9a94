/** Letting a client in that waits at the database port: who may, when, and to what. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { type LoginDesk, openLoginDesk, type ShownLink } from '../../core/waiting-login.ts';
import { deleteExpiredWaitingLogins } from '../../db/waiting-logins.ts';

let api: TestApi;
let now = new Date('2026-01-01T12:00:00Z');
let desk: LoginDesk;
let cookie: string;
let choice: Record<string, string>;
const never = new AbortController().signal;

beforeAll(async () => {
  api = await makeApi({}, { now: () => now });
  desk = await openLoginDesk(api.core);
  cookie = await signIn(api.token);
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  choice = {
    project_id: made.project.id,
    endpoint_id: made.endpoints[0].id,
    role_name: made.roles[0].name,
    database_name: made.databases[0].name,
  };
});
afterAll(async () => {
  await desk.close();
  await api.close();
});

const browser = { 'x-catnap-console': '1', host: 'localhost:7070', origin: 'http://localhost:7070' };

async function signIn(key: string): Promise<string> {
  const reply = await api.app.inject({
    method: 'POST',
    url: '/console/session',
    headers: browser,
    payload: { api_key: key },
  });
  return String(reply.headers['set-cookie']).split(';')[0] ?? '';
}

const connect = (address = '192.0.2.7') =>
  desk.showLink({ address, role: 'casey', database: 'shop', applicationName: 'psql' });
const tokenOf = ({ link }: ShownLink) => link.split('#')[1] ?? '';
const post = (what: string, body: object, headers: Record<string, string> = { ...browser, cookie }) =>
  api.app.inject({ method: 'POST', url: `/console/logins/${what}`, headers, payload: body });
const refusalOf = async (shown: ShownLink) => shown.wait(never).catch((thrown: Error) => thrown.message);

describe('a link', () => {
  test('shows who waits, and lets it in once', async () => {
    const shown = await connect();
    expect(shown.link).toMatch(/^http:\/\/localhost:7070\/psql#[\w-]{43}$/);
    const token = tokenOf(shown);
    const granted = shown.wait(never);
    expect((await post('show', { token })).json()).toEqual({
      state: 'waiting',
      client_address: '192.0.2.7',
      application_name: 'psql',
      role_name: 'casey',
      database_name: 'shop',
      created_at: '2026-01-01T12:00:00Z',
      expires_at: '2026-01-01T12:02:00Z',
    });
    expect((await post('confirm', { token, ...choice })).json()).toMatchObject({ state: 'confirmed' });
    const { endpointId, role, database, password } = await granted;
    expect([endpointId, role, database]).toEqual([choice.endpoint_id, choice.role_name, choice.database_name]);
    expect(password).toMatch(/^npg_/);
    expect((await post('show', { token })).json()).toMatchObject({ state: 'connected' });
    const again = await post('confirm', { token, ...choice });
    expect([again.statusCode, again.json().message]).toEqual([
      404,
      expect.stringContaining('this link was used before'),
    ]);
  });

  test('is kept as a hash', async () => {
    const shown = await connect();
    const rows = await api.core.database.sql<{ text: string }[]>`select w::text as text from waiting_logins w`;
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(tokenOf(shown));
  });

  test('can be refused', async () => {
    const shown = await connect();
    const refused = refusalOf(shown);
    expect((await post('refuse', { token: tokenOf(shown) })).json()).toMatchObject({ state: 'refused' });
    expect(await refused).toBe('the login was refused in the console');
  });

  test('dies with its client', async () => {
    const shown = await connect();
    const leaving = new AbortController();
    const waiting = shown.wait(leaving.signal).catch((thrown: Error) => thrown.message);
    leaving.abort(new Error('the client left'));
    expect(await waiting).toBe('the client left');
    expect((await post('show', { token: tokenOf(shown) })).statusCode).toBe(404);
    expect((await post('confirm', { token: tokenOf(shown), ...choice })).statusCode).toBe(404);
  });

  test('is too old after two minutes, for both sides', async () => {
    const shown = await connect();
    const before = now;
    now = new Date(now.getTime() + 120_000);
    expect((await post('show', { token: tokenOf(shown) })).statusCode).toBe(404);
    expect((await post('confirm', { token: tokenOf(shown), ...choice })).statusCode).toBe(404);
    expect(await refusalOf(shown)).toBe('nobody confirmed the login within 120 seconds');
    now = before;
    // By the database's clock, all of these are long over.
    expect(await deleteExpiredWaitingLogins(api.core.database.sql)).toBeGreaterThan(0);
  });

  test('is refused to an address that has too many', async () => {
    const shown: ShownLink[] = [];
    for (let count = 0; count < 20; count++) shown.push(await connect('2001:db8::1'));
    // IPv6 counts by the first 64 bits.
    await expect(connect('2001:db8::2')).rejects.toThrow('Too many logins wait for a person');
    expect((await connect('2001:db8:0:1::1')).link).toContain('/psql#');
    await post('refuse', { token: tokenOf(shown[0] ?? (await connect())) });
    expect((await connect('2001:db8::2')).link).toContain('/psql#');
  });
});

describe('the person', () => {
  const strangers: [string, () => Record<string, string>][] = [
    ['nobody', () => browser],
    ['a key', () => ({ ...browser, authorization: `Bearer ${api.token}` })],
    ['a key with a cookie', () => ({ ...browser, cookie, authorization: `Bearer ${api.token}` })],
    ['another page', () => ({ ...browser, cookie, origin: 'https://evil.test' })],
    ['a form', () => ({ host: browser.host, cookie })],
  ];
  test.each(strangers)('is not %s', async (_who, headers) => {
    const token = tokenOf(await connect());
    for (const what of ['show', 'refuse']) expect((await post(what, { token }, headers())).statusCode).toBe(401);
    expect((await post('confirm', { token, ...choice }, headers())).statusCode).toBe(401);
    expect((await post('show', { token })).json()).toMatchObject({ state: 'waiting' });
  });

  test('grants only what it may see', async () => {
    const token = tokenOf(await connect());
    const stranger = { ...browser, cookie: await signIn(api.strangerToken) };
    const reply = await post('confirm', { token, ...choice }, stranger);
    expect([reply.statusCode, reply.json().message]).toEqual([404, 'project not found']);
  });

  test.each([
    ['endpoint_id', 'ep-none-1', 'endpoint not found'],
    ['role_name', 'nobody', 'role not found'],
    ['database_name', 'nothing', 'database not found'],
  ])('names a %s that exists', async (field, value, message) => {
    const token = tokenOf(await connect());
    const reply = await post('confirm', { token, ...choice, [field]: value });
    expect([reply.statusCode, reply.json().message]).toEqual([404, message]);
  });

  test('cannot grant a role whose password is not known', async () => {
    const { sql } = api.core.database;
    const shown = await connect();
    const waiting = refusalOf(shown);
    await sql`update roles set password = null where name = ${choice.role_name ?? ''}`;
    const reply = await post('confirm', { token: tokenOf(shown), ...choice });
    expect([reply.statusCode, reply.json().message]).toEqual([
      422,
      expect.stringContaining('does not know the password'),
    ]);
    await post('refuse', { token: tokenOf(shown) });
    await waiting;
    const path = `/api/v2/projects/${choice.project_id}`;
    const { branch_id } = (await api.call('GET', `${path}/endpoints/${choice.endpoint_id}`)).json().endpoint;
    await api.call('POST', `${path}/branches/${branch_id}/roles/${choice.role_name}/reset_password`);
  });

  test('cannot grant a compute with passwordless_access off, and what was granted before is refused', async () => {
    const path = `/api/v2/projects/${choice.project_id}/endpoints/${choice.endpoint_id}`;
    const set = (passwordless_access: boolean) =>
      api.call('PATCH', path, { body: { endpoint: { passwordless_access } } });
    const early = await connect();
    await post('confirm', { token: tokenOf(early), ...choice });
    await set(false);
    expect(await refusalOf(early)).toContain('passwordless_access of this compute is off');
    const late = await connect();
    const reply = await post('confirm', { token: tokenOf(late), ...choice });
    expect([reply.statusCode, reply.json().message]).toEqual([
      422,
      'passwordless_access of this compute is off; log in with a password',
    ]);
    await set(true);
    expect((await post('confirm', { token: tokenOf(late), ...choice })).statusCode).toBe(200);
  });
});
