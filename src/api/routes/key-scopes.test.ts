import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { eventually } from '../../../test/helpers/eventually.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { lockProject } from '../../db/projects.ts';
import { dayMs } from '../../lib/clock.ts';
import { asProjectId } from '../../lib/ids.ts';
import { openOperations } from '../kit/key-needs.ts';

let api: TestApi;
/** Stands still until a test moves it. */
let now = Date.now();
const tomorrow = `${new Date(now + dayMs).toISOString().slice(0, 19)}Z`;
let project: string;
let main: string;
let mainEndpoint: string;
const driver = new FakeDriver();

beforeAll(async () => {
  api = await makeApi({}, { now: () => new Date(now) });
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: { name: 'shop' } } })).json();
  project = `/projects/${made.project.id}`;
  main = made.branch.id;
  mainEndpoint = made.endpoints[0].id;
  await drain(api.core, driver);
});
afterAll(() => api.close());

type Method = Parameters<TestApi['call']>[0];

async function newKey(body: object): Promise<string> {
  const reply = await api.call('POST', '/api/v2/api_keys', { body: { key_name: 'agent', ...body } });
  expect(reply.statusCode).toBe(200);
  return reply.json().key;
}

/** Calls as the holder of a new key of the scope. */
async function holderOf(scope: string) {
  const token = await newKey({ scope });
  return async (method: Method, path: string, body?: object) => {
    const reply = await api.call(method, `/api/v2${path}`, { token, ...(body === undefined ? {} : { body }) });
    return { status: reply.statusCode, body: reply.json() };
  };
}

const connection = (branch: string) =>
  `${project}/connection_uri?branch_id=${branch}&database_name=neondb&role_name=neondb_owner`;
const passwordOn = (branch: string) => `${project}/branches/${branch}/roles/neondb_owner/reveal_password`;

test('every operation that is open to limited keys is one that is served', () => {
  const served = new Set(api.app.routeTable.map(({ operationId }) => operationId));
  expect([...openOperations].filter((id) => !served.has(id))).toEqual([]);
});

test('what is read and closed to them holds secrets or is about keys', () => {
  const closed = api.app.routeTable.filter(
    ({ method, isPublic, operationId = '', notOffered }) =>
      method === 'GET' && !isPublic && notOffered === undefined && !openOperations.has(operationId),
  );
  expect(closed.map(({ operationId }) => operationId).sort()).toEqual([
    'getNeonAuth',
    'listApiKeys',
    'listBranchNeonAuthOauthProviders',
    'listBranchNeonAuthTrustedDomains',
    'listNeonAuthIntegrations',
    'listNeonAuthOauthProviders',
    'listNeonAuthRedirectURIWhitelistDomains',
    'listOrgApiKeys',
    'listOutbox',
    'listProjectBranchRoleVerifiers',
    'listProjectWebhookDeliveries',
    'listProjectWebhooks',
  ]);
});

describe('a key', () => {
  test('shows its scope and its end, and is full unless told otherwise', async () => {
    const body = { key_name: 'shown', scope: 'read_only', expires_at: tomorrow };
    const made = (await api.call('POST', '/api/v2/api_keys', { body })).json();
    expect(made).toMatchObject({ scope: 'read_only', expires_at: tomorrow });
    const listed: { id: number; scope: string }[] = (await api.call('GET', '/api/v2/api_keys')).json();
    expect(listed.find(({ id }) => id === made.id)).toMatchObject({ scope: 'read_only', expires_at: tomorrow });
    expect(listed[0]).toMatchObject({ name: 'first key', scope: 'full' });
    expect(listed[0]).not.toHaveProperty('expires_at');
    const details = (await api.call('GET', '/api/v2/auth', { token: made.key })).json();
    expect(details).toMatchObject({ scope: 'read_only', expires_at: tomorrow });
  });

  test('does not work once it has expired, nor does what was signed in with it', async () => {
    const token = await newKey({ expires_at: new Date(now + 60_000).toISOString() });
    const headers = { 'x-catnap-console': '1', 'sec-fetch-site': 'same-origin' };
    const signIn = () =>
      api.app.inject({ method: 'POST', url: '/console/session', headers, payload: { api_key: token } });
    const cookie = String((await signIn()).headers['set-cookie']).split(';')[0] ?? '';
    const asSignedIn = () => api.call('GET', '/api/v2/projects', { token: null, headers: { ...headers, cookie } });
    expect((await api.call('GET', '/api/v2/projects', { token })).statusCode).toBe(200);
    expect((await asSignedIn()).statusCode).toBe(200);
    now += 60_000;
    expect((await api.call('GET', '/api/v2/projects', { token })).statusCode).toBe(401);
    expect((await asSignedIn()).statusCode).toBe(401);
    expect((await signIn()).statusCode).toBe(401);
  });

  test('that expires makes no key that lives longer', async () => {
    const token = await newKey({ expires_at: tomorrow });
    const make = (more: object) => api.call('POST', '/api/v2/api_keys', { token, body: { key_name: 'next', ...more } });
    expect((await make({ expires_at: tomorrow })).statusCode).toBe(200);
    for (const more of [{}, { expires_at: new Date(now + 2 * dayMs).toISOString() }]) {
      const refused = await make(more);
      expect(refused.statusCode).toBe(403);
      expect(refused.json().message).toMatch(/^a key that expires makes no key that lives longer; expires_at:/);
    }
  });

  test.each([
    [{ scope: 'root' }, 'invalid request: body.scope must be one of full, read_only, branches, sql'],
    [{ expires_at: 'soon' }, 'invalid request: body.expires_at must be a time such as 2026-01-31T12:00:00Z'],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'invalid request: body.expires_at must be a time in the future'],
  ])('is refused with %o', async (body, message) => {
    const reply = await api.call('POST', '/api/v2/api_keys', { body: { key_name: 'x', ...body } });
    expect([reply.statusCode, reply.json().message]).toEqual([400, message]);
  });

  test('of an organization has both too, and one that is not full does not count as the last personal one', async () => {
    const { organizations } = (await api.call('GET', '/api/v2/users/me/organizations')).json();
    const path = `/api/v2/organizations/${organizations[0].id}/api_keys`;
    const body = { key_name: 'x', project_id: project.slice(10), scope: 'sql', expires_at: tomorrow };
    const made = (await api.call('POST', path, { body })).json();
    expect(made).toMatchObject({ scope: 'sql', expires_at: tomorrow, project_id: project.slice(10) });
    const token = api.strangerToken;
    await api.call('POST', '/api/v2/api_keys', { token, body: { key_name: 'limited', scope: 'read_only' } });
    const [first] = (await api.call('GET', '/api/v2/api_keys', { token })).json();
    const revoked = await api.call('DELETE', `/api/v2/api_keys/${first.id}`, { token });
    expect(revoked.json().warning).toMatch(/^this was the last personal key/);
  });
});

test('of scope read_only: reads, and neither changes nor connects', async () => {
  const as = await holderOf('read_only');
  for (const path of ['/projects', project, `${project}/operations`, `${project}/branches/${main}/history`]) {
    expect([path, (await as('GET', path)).status]).toEqual([path, 200]);
  }
  const refused = { status: 403, body: { message: 'not allowed for API keys of scope read_only' } };
  expect(await as('POST', `${project}/branches`)).toMatchObject(refused);
  expect(await as('PATCH', project, { project: { name: 'x' } })).toMatchObject(refused);
  expect(await as('GET', connection(main))).toMatchObject(refused);
  expect(await as('GET', passwordOn(main))).toMatchObject(refused);
  expect(await as('GET', '/api_keys')).toMatchObject(refused);
  expect(await as('POST', '/api_keys', { key_name: 'more' })).toMatchObject(refused);
  // Nor what Catnap does not offer: it is not asked whether it does.
  expect(await as('POST', `${project}/transfer_requests`, {})).toMatchObject(refused);
});

test('of scope sql: finds the way to a database, and nothing else', async () => {
  const as = await holderOf('sql');
  const found = await as('GET', connection(main));
  expect([found.status, found.body.uri]).toEqual([200, expect.stringContaining('neondb_owner:')]);
  expect((await as('GET', passwordOn(main))).status).toBe(200);
  expect((await as('GET', `${project}/branches/${main}/databases`)).status).toBe(200);
  for (const path of [`${project}/operations`, `${project}/endpoints/${mainEndpoint}/logs`, '/users/me']) {
    expect([path, (await as('GET', path)).status]).toEqual([path, 403]);
  }
  expect((await as('POST', `${project}/branches`)).status).toBe(403);
});

describe('of scope branches', () => {
  let as: Awaited<ReturnType<typeof holderOf>>;
  let own: string;
  let ownEndpoint: string;

  beforeAll(async () => {
    as = await holderOf('branches');
    const made = await as('POST', `${project}/branches`, { endpoints: [{ type: 'read_write' }] });
    expect(made.status).toBe(201);
    // They would have the passwords of the parent.
    expect(made.body).not.toHaveProperty('connection_uris');
    own = made.body.branch.id;
    ownEndpoint = made.body.endpoints[0].id;
    await drain(api.core, driver);
  });

  test('changes its branch and what is in it, leaves the default one and protected ones alone', async () => {
    const path = `${project}/branches/${own}`;
    const role = await as('POST', `${path}/roles`, { role: { name: 'agent' } });
    expect([role.status, role.body.role.password]).toEqual([201, expect.any(String)]);
    expect((await as('POST', `${path}/databases`, { database: { name: 'mine', owner_name: 'agent' } })).status).toBe(
      201,
    );
    expect((await as('PATCH', path, { branch: { name: 'mine' } })).status).toBe(200);
    expect((await as('POST', `${project}/endpoints/${ownEndpoint}/suspend`)).status).toBe(200);
    await drain(api.core, driver);

    const message = 'API keys of scope branches leave the default branch and protected branches alone; branch:"main"';
    const refused = { status: 403, body: { message } };
    const guarded = `${project}/branches/${main}`;
    expect(await as('PATCH', guarded, { branch: { name: 'x' } })).toMatchObject(refused);
    expect(await as('POST', `${guarded}/roles`, { role: { name: 'agent' } })).toMatchObject(refused);
    expect(await as('POST', `${guarded}/roles/neondb_owner/reset_password`)).toMatchObject(refused);
    expect(await as('POST', `${project}/endpoints/${mainEndpoint}/suspend`)).toMatchObject(refused);
    expect(await as('DELETE', `${project}/endpoints/${mainEndpoint}`)).toMatchObject(refused);
    const more = { endpoint: { branch_id: main, type: 'read_only' } };
    expect(await as('POST', `${project}/endpoints`, more)).toMatchObject(refused);
    const moved = { endpoint: { branch_id: main } };
    expect(await as('PATCH', `${project}/endpoints/${ownEndpoint}`, moved)).toMatchObject(refused);
    for (const closed of ['set_as_default', 'set_as_primary', 'finalize_restore', 'snapshot']) {
      expect([closed, (await as('POST', `${path}/${closed}`)).status]).toEqual([closed, 403]);
    }
    expect((await as('PATCH', project, { project: { name: 'x' } })).status).toBe(403);
    expect((await as('DELETE', `${path}?hard_delete=true`)).status).toBe(403);

    await api.call('PATCH', `/api/v2${path}`, { body: { branch: { protected: true } } });
    expect((await as('PATCH', path, { branch: { protected: false } })).status).toBe(403);
    await api.call('PATCH', `/api/v2${path}`, { body: { branch: { protected: false } } });
  });

  test('gets passwords that open its branch alone', async () => {
    for (const path of [connection(main), `${project}/connection_uri?database_name=neondb&role_name=neondb_owner`]) {
      expect((await as('GET', path)).status).toBe(403);
    }
    const shared = { status: 403, body: { message: expect.stringMatching(/^the password of this role also opens/) } };
    expect(await as('GET', connection(own))).toMatchObject(shared);
    expect(await as('GET', passwordOn(own))).toMatchObject(shared);
    const byEndpoint = `${project}/connection_uri?endpoint_id=${ownEndpoint}&database_name=neondb`;
    expect(await as('GET', `${byEndpoint}&role_name=neondb_owner`)).toMatchObject(shared);

    const reset = await as('POST', `${project}/branches/${own}/roles/neondb_owner/reset_password`);
    expect(reset.status).toBe(200);
    await drain(api.core, driver);
    const { status, body } = await as('GET', connection(own));
    expect([status, body.uri]).toEqual([200, expect.stringContaining(reset.body.role.password)]);

    // The data of the default branch comes with its passwords.
    const restored = await as('POST', `${project}/branches/${own}/restore`, { source_branch_id: main });
    expect(restored.status).toBe(200);
    await drain(api.core, driver);
    expect(await as('GET', connection(own))).toMatchObject(shared);
  });

  test('gets 404 for what it does not reach, and deletes what can be recovered', async () => {
    expect((await as('PATCH', `${project}/branches/br-none-1`, { branch: { name: 'x' } })).status).toBe(404);
    expect((await as('POST', `/projects/none-1/endpoints/${ownEndpoint}/start`)).status).toBe(404);
    expect((await as('DELETE', `${project}/branches/${own}`)).status).toBe(200);
    await drain(api.core, driver);
    expect((await api.call('GET', '/api/v2/deleted')).body).toContain(own);
  });
});

test('a console that was signed in to with a limited key lets nobody in by a link, and shows metrics to readers', async () => {
  const headers = { 'x-catnap-console': '1', 'sec-fetch-site': 'same-origin' };
  const payload = { api_key: await newKey({ scope: 'branches' }) };
  const signedIn = await api.app.inject({ method: 'POST', url: '/console/session', headers, payload });
  const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
  const shown = await api.app.inject({ url: '/console/session', headers: { ...headers, cookie } });
  expect(shown.json().key).toMatchObject({ scope: 'branches' });
  const show = { method: 'POST', url: '/console/logins/show', payload: { token: 'x' } } as const;
  expect((await api.app.inject({ ...show, headers: { ...headers, cookie } })).statusCode).toBe(403);
  const metricsWith = async (scope: string) => {
    const authorization = `Bearer ${await newKey({ scope })}`;
    const forwarded = { authorization, 'x-forwarded-for': '192.0.2.1' };
    return (await api.app.inject({ url: '/metrics', headers: forwarded })).statusCode;
  };
  expect([await metricsWith('read_only'), await metricsWith('sql')]).toEqual([200, 403]);
});

test('a branch that becomes protected while a limited key changes it is left alone', async () => {
  const agent = await holderOf('branches');
  const made = (await agent('POST', `${project}/branches`, { branch: { name: 'raced' } })).body.branch;
  await drain(api.core, driver);
  const { sql } = api.core.database;
  const rename = async (name: string) => agent('PATCH', `${project}/branches/${made.id}`, { branch: { name } });
  expect((await rename('raced again')).status).toBe(200);
  let renaming: ReturnType<typeof rename> | undefined;
  await api.core.database.transaction(async (tx) => {
    await lockProject(tx, asProjectId(made.project_id));
    // It has been let through, and waits for the project.
    renaming = rename('too late');
    await eventually(async () => {
      const waiting = await sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      expect(waiting).toHaveLength(1);
    });
    await tx`update branches set protected = true where id = ${made.id}`;
  });
  expect(await renaming).toMatchObject({ status: 403, body: { message: expect.stringContaining('scope branches') } });
  expect((await agent('GET', `${project}/branches/${made.id}`)).body.branch.name).toBe('raced again');
});
