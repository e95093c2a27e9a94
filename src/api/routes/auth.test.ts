import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { testProviders } from '../../../test/helpers/providers.ts';
import { type StandIn, type StandInProject, startStandIn } from '../../../test/helpers/stand-in-provider.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { createOperationFollower } from '../../core/operation-wait.ts';
import { createLogger } from '../../lib/log.ts';
import { authTransfers } from '../../reconcilers/auth-transfers.ts';
import { providerLeftovers } from '../../reconcilers/provider-leftovers.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let standIn: StandIn;
let api: TestApi;
const driver = new FakeDriver();

beforeAll(async () => {
  standIn = await startStandIn();
  api = await makeApi({}, undefined, (core) => ({
    providers: testProviders(standIn),
    // The worker's part, done while the request waits.
    awaitOperation: async (id) => {
      await drain(core, driver, undefined, testProviders(standIn));
      const waiter = await createOperationFollower(core, 1_000);
      return waiter.awaitOperation(id).finally(() => waiter.close());
    },
  }));
});
afterAll(async () => {
  await api.close();
  await standIn.close();
});

let made: { projectId: string; branchId: string };
let base: { project_id: string; auth_provider: string };

beforeEach(async () => {
  standIn.projects.clear();
  standIn.calls.length = 0;
  const { project, branch } = (await post('/projects', { project: { name: 'app' } })).body;
  await drain(api.core, driver);
  made = { projectId: project.id, branchId: branch.id };
  base = { project_id: project.id, auth_provider: 'stack' };
});

async function post(path: string, body: object, options: { token?: string; headers?: Record<string, string> } = {}) {
  const reply = await api.call('POST', `/api/v2${path}`, { body, ...options });
  return { status: reply.statusCode, body: reply.body === '' ? undefined : reply.json() };
}
const get = async (path: string) => (await api.call('GET', `/api/v2${path}`)).json();
const remove = async (path: string, body?: object) => {
  const reply = await api.call('DELETE', `/api/v2${path}`, body === undefined ? {} : { body });
  return { status: reply.statusCode, body: reply.body === '' ? undefined : reply.json() };
};
const create = (more: object = {}) => post('/projects/auth/create', { ...base, branch_id: made.branchId, ...more });
const integrations = async () => (await get(`/projects/${made.projectId}/auth/integrations`)).data;
const cleanUp = () => providerLeftovers(testProviders(standIn)).turn({ core: api.core, driver, log });
function onlyProject(): StandInProject {
  expect(standIn.projects.size).toBe(1);
  for (const project of standIn.projects.values()) return project;
  throw new Error('there is no project');
}

describe('creating an integration', () => {
  test('answers with working keys, and lists it', async () => {
    const { status, body } = await create();
    const { id, keySets } = onlyProject();
    expect(status).toBe(201);
    expect(body).toEqual({
      auth_provider: 'stack',
      auth_provider_project_id: id,
      pub_client_key: expect.stringMatching(/^pck_/),
      secret_server_key: keySets[0]?.secretServerKey,
      jwks_url: `${standIn.url}/api/v1/projects/${id}/.well-known/jwks.json`,
      base_url: standIn.url,
      schema_name: 'neon_auth',
      table_name: 'users_sync',
    });
    expect(await integrations()).toEqual([
      {
        auth_provider: 'stack',
        auth_provider_project_id: id,
        branch_id: made.branchId,
        db_name: 'neondb',
        created_at: expect.any(String),
        owned_by: 'neon',
        jwks_url: body.jwks_url,
        base_url: standIn.url,
        users_synced_at: expect.any(String),
      },
    ]);
    expect(await get(`/projects/${made.projectId}/branches/${made.branchId}/auth`)).toMatchObject({
      db_name: 'neondb',
    });
  });

  test('is not listed as an operation', async () => {
    await create();
    const { operations } = await get(`/projects/${made.projectId}/operations`);
    expect(operations.map((operation: { action: string }) => operation.action).sort()).toEqual([
      'create_timeline',
      'start_compute',
    ]);
  });

  test('a second time is a 409, and changes nothing', async () => {
    await create();
    expect((await create()).status).toBe(409);
    expect((await create({ database_name: 'neondb' })).body.message).toMatch(/already has an auth integration/);
    expect(onlyProject().keySets).toHaveLength(1);
  });

  test('takes neondb and neondb_owner, even if the branch has older ones', async () => {
    const { sql } = api.core.database;
    await sql`update databases set name = 'older' where branch_id = ${made.branchId}`;
    await sql`update roles set name = 'older' where branch_id = ${made.branchId}`;
    await sql`insert into databases (branch_id, name, owner_name) values (${made.branchId}, 'neondb', 'older')`;
    await sql`insert into roles (branch_id, name, no_login) values (${made.branchId}, 'neondb_owner', false)`;
    expect((await create()).status).toBe(201);
    const [row] = await sql`select database_name, role_name from auth_integrations where branch_id = ${made.branchId}`;
    expect(row).toEqual({ databaseName: 'neondb', roleName: 'neondb_owner' });
  });

  test('takes the branch’s first database and role where those are missing', async () => {
    await api.core.database.sql`update databases set name = 'shop' where branch_id = ${made.branchId}`;
    await api.core.database.sql`update roles set name = 'boss' where branch_id = ${made.branchId}`;
    expect((await create()).status).toBe(201);
    expect(await integrations()).toMatchObject([{ db_name: 'shop' }]);
  });

  test.each([
    ['an unknown database', { database_name: 'nope' }, 404, 'database not found; database_name:"nope"'],
    ['an unknown role', { role_name: 'nope' }, 404, 'role not found; role_name:"nope"'],
    ['an unknown branch', { branch_id: 'br-no-branch-1' }, 404, 'branch not found'],
    ['an unknown project', { project_id: 'no-project-1' }, 404, 'project not found'],
    ['another provider', { auth_provider: 'mock' }, 400, 'body.auth_provider must be one of stack'],
    ['a missing provider', { auth_provider: undefined }, 400, 'body.auth_provider (field required)'],
    ['a missing branch', { branch_id: undefined }, 400, 'body.branch_id (field required)'],
    ['a missing project', { project_id: undefined }, 400, 'body.project_id (field required)'],
    ['a database of the wrong type', { database_name: 7 }, 400, 'body.database_name must be a string'],
    ['a database name that is too long', { database_name: 'x'.repeat(64) }, 400, 'must be 1 to 63 characters'],
    ['a hostile role', { role_name: `x"; drop table users --` }, 404, 'role not found'],
    ['something else', { extra: 1 }, 400, 'body.extra is not a known attribute'],
  ])('for %s is refused and asks the provider nothing', async (_name, more, status, message) => {
    const reply = await create(more);
    expect([reply.status, reply.body.message]).toEqual([status, expect.stringContaining(message)]);
    expect(standIn.calls).toEqual([]);
    expect(await integrations()).toEqual([]);
  });

  test('for a branch other than the default is refused', async () => {
    const { branch } = (await post(`/projects/${made.projectId}/branches`, {})).body;
    const reply = await create({ branch_id: branch.id });
    expect([reply.status, reply.body.message]).toEqual([422, expect.stringContaining('default branch')]);
  });

  test('works by the branch too', async () => {
    const path = `/projects/${made.projectId}/branches/${made.branchId}/auth`;
    expect((await post(path, { auth_provider: 'stack' })).status).toBe(201);
    expect((await post(path, { auth_provider: 'stack' })).status).toBe(409);
    expect((await remove(path)).status).toBe(200);
    expect((await api.call('GET', `/api/v2${path}`)).statusCode).toBe(404);
  });

  test('with an Idempotency-Key gives the same reply again', async () => {
    const body = { ...base, branch_id: made.branchId };
    const options = { headers: { 'idempotency-key': `k-${made.projectId}` } };
    const [first, second] = await Promise.all([
      post('/projects/auth/create', body, options),
      post('/projects/auth/create', body, options),
    ]);
    const third = await post('/projects/auth/create', body, options);
    expect([first.status, second.body, third.body]).toEqual([201, first.body, first.body]);
    expect((await post('/projects/auth/create', { ...body, role_name: 'x' }, options)).status).toBe(422);
  });
});

describe('a provider that fails', () => {
  test('midway leaves nothing: what it had made is removed', async () => {
    standIn.trouble('POST /integrations/neon/webhooks', { status: 400, body: { code: 'SCHEMA_ERROR', error: 'no' } });
    const reply = await create();
    expect([reply.status, reply.body.message]).toEqual([502, expect.stringContaining('was not made')]);
    expect(await integrations()).toEqual([]);
    await cleanUp();
    expect(standIn.projects.size).toBe(0);
    expect((await create()).status).toBe(201);
  });

  test('for a moment is asked again', async () => {
    for (const call of ['projects/provision', 'api-keys', 'webhooks']) {
      standIn.trouble(`POST /integrations/neon/${call}`, { status: 503, body: 'busy' });
    }
    expect((await create()).status).toBe(201);
    expect(onlyProject().keySets).toHaveLength(1);
  });

  test('whose answer about the keys was lost: those keys are revoked', async () => {
    standIn.trouble('POST /integrations/neon/api-keys', 'lose the answer');
    const { body } = await create();
    const open = onlyProject().keySets.filter((set) => set.revokedAt === null);
    expect(open.map((set) => set.secretServerKey)).toEqual([body.secret_server_key]);
  });

  test('with wrong credentials of this installation is told apart', async () => {
    const error = 'Invalid client_id:client_secret values';
    standIn.trouble('POST /integrations/neon/projects/provision', {
      status: 400,
      body: { code: 'SCHEMA_ERROR', error },
    });
    const reply = await create();
    expect([reply.status, reply.body.message]).toEqual([502, expect.stringContaining('client id and secret')]);
  });

  test('that has revoked the admin key makes later calls a 412', async () => {
    await create();
    onlyProject().isAdminKeyRevoked = true;
    for (const path of ['keys', 'user']) {
      const reply = await post(`/projects/auth/${path}`, path === 'user' ? { ...base, email: 'a@b.test' } : base);
      expect([reply.status, reply.body.message]).toEqual([412, expect.stringContaining('revoked')]);
    }
    expect((await remove(`/projects/${made.projectId}/auth/integration/stack`, { delete_data: true })).status).toBe(
      200,
    );
  });
});

describe('deleting an integration', () => {
  test('keeps what the provider has, for an integration made later', async () => {
    const { body: first } = await create();
    expect(await remove(`/projects/${made.projectId}/auth/integration/stack`)).toEqual({
      status: 200,
      body: undefined,
    });
    expect(await integrations()).toEqual([]);
    expect((await post('/projects/auth/keys', base)).status).toBe(404);
    await cleanUp();
    const { body: second } = await create();
    expect(second.auth_provider_project_id).toBe(first.auth_provider_project_id);
    expect(second.secret_server_key).not.toBe(first.secret_server_key);
  });

  test('makes a new project when the kept one is gone', async () => {
    const { body: first } = await create();
    await remove(`/projects/${made.projectId}/auth/integration/stack`);
    standIn.projects.clear();
    const { body: second } = await create();
    expect(second.auth_provider_project_id).not.toBe(first.auth_provider_project_id);
  });

  test('with its data removes the provider’s project, unless somebody owns it', async () => {
    await create();
    await remove(`/projects/${made.projectId}/auth/integration/stack`, { delete_data: true });
    await cleanUp();
    expect(standIn.projects.size).toBe(0);
    await create();
    onlyProject().ownerTeamId = 'somebody';
    await post('/projects/auth/transfer_ownership', base);
    await remove(`/projects/${made.projectId}/auth/integration/stack`, { delete_data: true });
    await cleanUp();
    expect(standIn.projects.size).toBe(1);
  });

  test('of a provider that there is not is a 404', async () => {
    await create();
    expect((await remove(`/projects/${made.projectId}/auth/integration/mock`)).status).toBe(404);
    expect(await integrations()).toHaveLength(1);
  });

  test('comes with purging the project', async () => {
    await create();
    await remove(`/projects/${made.projectId}`);
    await drain(api.core, driver);
    await cleanUp();
    expect(standIn.projects.size).toBe(1);
    await post(`/projects/${made.projectId}/purge`, {});
    await drain(api.core, driver);
    await cleanUp();
    expect(standIn.projects.size).toBe(0);
  });
});

describe('users', () => {
  test('are made and deleted at the provider', async () => {
    await create();
    const user = await post('/projects/auth/user', { ...base, email: 'Ann@Example.com', name: 'Ann' });
    expect(user.status).toBe(201);
    const found = onlyProject().users.get(user.body.id);
    expect(found).toMatchObject({ primary_email: 'ann@example.com', display_name: 'Ann' });
    const path = `/projects/${made.projectId}/auth/users/${user.body.id}`;
    expect((await remove(path)).status).toBe(204);
    expect((await remove(path)).status).toBe(404);
  });

  test('of one address are a 409', async () => {
    await create();
    await post('/projects/auth/user', { ...base, email: 'a@b.test' });
    expect((await post('/projects/auth/user', { ...base, email: 'a@b.test' })).status).toBe(409);
  });

  test.each([
    ['no email', {}],
    ['no address', { email: 'ann' }],
    ['an address with a space', { email: 'an n@b.test' }],
    ['an address with two dots', { email: 'a..b@c.test' }],
    ['a dotless domain', { email: 'a@b' }],
    ['an empty name', { email: 'a@b.test', name: '' }],
    ['a name of 256 characters', { email: 'a@b.test', name: 'x'.repeat(256) }],
    ['an email that is too long', { email: `${'x'.repeat(250)}@b.test` }],
    ['an email of the wrong type', { email: ['a@b.test'] }],
    ['NUL', { email: 'a@b.test', name: '\0' }],
  ])('with %s are refused', async (_name, more) => {
    await create();
    const reply = await post('/projects/auth/user', { ...base, ...more });
    expect([reply.status, reply.body.message]).toEqual([400, expect.stringMatching(/^invalid request: body/)]);
    expect(onlyProject().users.size).toBe(0);
  });

  test('with a name of 1 and of 255 characters are made', async () => {
    await create();
    for (const length of [1, 255]) {
      const body = { ...base, email: `n${length}@b.test`, name: 'x'.repeat(length) };
      expect((await post('/projects/auth/user', body)).status).toBe(201);
    }
  });
});

describe('keys and ownership', () => {
  test('new keys are a new pair', async () => {
    const { body: first } = await create();
    const { status, body } = await post('/projects/auth/keys', base);
    expect(status).toBe(201);
    expect(body).toEqual({ ...first, pub_client_key: body.pub_client_key, secret_server_key: body.secret_server_key });
    expect(body.secret_server_key).not.toBe(first.secret_server_key);
  });

  test('a transfer answers with its page, and is shown', async () => {
    await create();
    const { status, body } = await post('/projects/auth/transfer_ownership', base);
    expect([status, body.url]).toEqual([200, expect.stringContaining('confirm?code=')]);
    expect(await integrations()).toMatchObject([{ owned_by: 'neon', transfer_status: 'initiated' }]);
  });

  test('a transfer that is confirmed is learnt by asking', async () => {
    await create();
    await post('/projects/auth/transfer_ownership', base);
    const look = () => authTransfers(testProviders(standIn)).turn({ core: api.core, driver, log });
    await look();
    expect(await integrations()).toMatchObject([{ owned_by: 'neon', transfer_status: 'initiated' }]);
    onlyProject().ownerTeamId = 'somebody';
    await look();
    expect(await integrations()).toMatchObject([{ owned_by: 'user', transfer_status: 'finished' }]);
  });

  test('a transfer that was confirmed meanwhile is a 409', async () => {
    await create();
    onlyProject().ownerTeamId = 'somebody';
    expect((await post('/projects/auth/transfer_ownership', base)).status).toBe(409);
    expect(await integrations()).toMatchObject([{ owned_by: 'user', transfer_status: 'finished' }]);
  });
});

describe('trusted domains and OAuth providers', () => {
  const forms = () => [
    `/projects/${made.projectId}/auth`,
    `/projects/${made.projectId}/branches/${made.branchId}/auth`,
  ];

  test('are kept by the provider, by project and by branch', async () => {
    await create();
    for (const path of forms()) {
      // `better_auth` is what the published command line sends, whatever the integration is.
      for (const auth_provider of ['stack', 'better_auth']) {
        const domain = 'https://app.example.com';
        expect((await post(`${path}/domains`, { domain, auth_provider })).status).toBe(201);
        expect(await get(`${path}/domains`)).toEqual({ domains: [{ domain, auth_provider: 'stack' }] });
        expect((await remove(`${path}/domains`, { auth_provider, domains: [{ domain }] })).status).toBe(200);
        expect(await get(`${path}/domains`)).toEqual({ domains: [] });
      }
      const unknown = await post(`${path}/domains`, { domain: 'https://app.example.com', auth_provider: 'none' });
      expect([unknown.status, unknown.body.message]).toEqual([400, expect.stringContaining('auth_provider')]);
    }
    for (const path of forms()) {
      const shared = { id: 'google', type: 'shared' };
      expect((await get(`${path}/oauth_providers`)).providers).toContainEqual(shared);
      const added = await post(`${path}/oauth_providers`, { id: 'microsoft', client_id: 'c', client_secret: 's' });
      expect(added.body).toEqual({ id: 'microsoft', type: 'standard', client_id: 'c', client_secret: 's' });
      expect((await post(`${path}/oauth_providers`, { id: 'microsoft' })).status).toBe(409);
      const member = `/api/v2${path}/oauth_providers/microsoft`;
      expect((await api.call('PATCH', member, { body: { client_id: 'd' } })).json()).toMatchObject({ client_id: 'd' });
      expect((await api.call('DELETE', member)).statusCode).toBe(200);
      expect((await api.call('DELETE', member)).statusCode).toBe(404);
      expect((await api.call('PATCH', member, { body: {} })).statusCode).toBe(404);
    }
  });

  test.each([
    ['an id that nobody can sign in with', { id: 'facebook', client_id: 'c', client_secret: 's' }, 'body.id'],
    ['an id that is none', { id: 'Ä', client_id: 'c', client_secret: 's' }, 'body.id'],
    [
      'a tenant that is an address',
      { id: 'microsoft', client_id: 'c', client_secret: 's', microsoft_tenant_id: '../x' },
      'body.microsoft_tenant_id',
    ],
  ])('an OAuth provider with %s is refused', async (_what, body, field) => {
    await create();
    for (const path of forms()) {
      const reply = await post(`${path}/oauth_providers`, body);
      expect([reply.status, reply.body.message]).toEqual([400, expect.stringContaining(field)]);
    }
  });

  test.each(['example.com', 'ftp://a.test', 'https://a.test/path', 'https://', 'https://a.test:99999', 'javascript:x'])(
    'a domain %s is refused',
    async (domain) => {
      await create();
      const path = `/projects/${made.projectId}/auth/domains`;
      expect((await post(path, { domain, auth_provider: 'stack' })).status).toBe(400);
      expect((await remove(path, { domains: [{ domain }], auth_provider: 'stack' })).status).toBe(400);
    },
  );
});

describe('other people', () => {
  test('see none of it: strangers, and keys of another project', async () => {
    await create();
    const { organizations } = await get('/users/me/organizations');
    const other = (await post('/projects', { project: {} })).body.project.id;
    const key = (await post(`/organizations/${organizations[0].id}/api_keys`, { key_name: 'other', project_id: other }))
      .body.key;
    for (const token of [api.strangerToken, key]) {
      const calls = [
        post('/projects/auth/create', { ...base, branch_id: made.branchId }, { token }),
        post('/projects/auth/keys', base, { token }),
        post('/projects/auth/user', { ...base, email: 'a@b.test' }, { token }),
        post('/projects/auth/transfer_ownership', base, { token }),
      ];
      for (const { status } of await Promise.all(calls)) expect(status).toBe(404);
    }
    expect(onlyProject().users.size).toBe(0);
    expect(onlyProject().keySets).toHaveLength(1);
    expect(await integrations()).toMatchObject([{ owned_by: 'neon' }]);
  });

  test('nobody gets in without a key, or with fields missing', async () => {
    for (const path of ['create', 'keys', 'user', 'transfer_ownership']) {
      const url = `/api/v2/projects/auth/${path}`;
      expect((await api.call('POST', url, { body: base, token: null })).statusCode).toBe(401);
      for (const field of ['project_id', 'auth_provider'] as const) {
        const { [field]: _gone, ...body } = base;
        expect((await api.call('POST', url, { body })).statusCode).toBe(400);
        expect((await api.call('POST', url, { body: { ...base, [field]: { a: 1 } } })).statusCode).toBe(400);
        expect((await api.call('POST', url, { body: { ...base, [field]: 'x'.repeat(9_999) } })).statusCode).toBe(400);
      }
    }
    expect(standIn.calls).toEqual([]);
  });
});
