/** Users from the auth provider to the database port: awake, asleep, and while the compute comes and goes. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createApiClient, NeonAuthSupportedAuthProvider } from '@neondatabase/api-client';
import { StackClientApp } from '@stackframe/js';
import { usersSync } from 'drizzle-orm/neon';
import { drizzle } from 'drizzle-orm/node-postgres';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const auth_provider = NeonAuthSupportedAuthProvider.Stack;
/** As many as the acceptance asks for with CATNAP_TEST_SIGN_UPS=1000. */
const signUps = Number(process.env.CATNAP_TEST_SIGN_UPS ?? 20);

let program: Program;
let uri: string;
let project_id: string;
let branch_id: string;
let endpointId: string;
let keys: {
  readonly auth_provider_project_id: string;
  readonly pub_client_key: string;
  readonly secret_server_key: string;
  readonly jwks_url: string;
  readonly base_url: string;
};

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'app' } });
  uri = body.connection_uris[0].connection_uri;
  project_id = body.project.id;
  branch_id = body.branch.id;
  endpointId = body.endpoints[0].id;
  await program.settle(project_id);
});
afterAll(() => program.destroy());

const suspend = async () => {
  await program.api('POST', `/projects/${project_id}/endpoints/${endpointId}/suspend`);
  await program.settle(project_id);
};
const createUser = async (email: string, name?: string) => {
  const body = { project_id, auth_provider, email, ...(name === undefined ? {} : { name }) };
  const reply = await program.api('POST', '/projects/auth/user', body);
  expect(reply.status).toBe(201);
  return reply.body.id as string;
};
const countOf = (email: string, more = '') =>
  ask(uri, `select count(*) from neon_auth.users_sync where email = '${email}' ${more}`);

/** As an application's server does, with the secret key. */
function atProvider(method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${keys.base_url}/api/v1${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      'x-stack-access-type': 'server',
      'x-stack-project-id': keys.auth_provider_project_id,
      'x-stack-publishable-client-key': keys.pub_client_key,
      'x-stack-secret-server-key': keys.secret_server_key,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe('an auth integration', () => {
  it('is made with working keys, and its table is there', async () => {
    const reply = await program.api('POST', '/projects/auth/create', { auth_provider, project_id, branch_id });
    expect(reply.status).toBe(201);
    keys = reply.body;
    expect(await ask(uri, 'select count(*) from neon_auth.users_sync')).toBe('0');
    const owner = `select tableowner from pg_tables where schemaname = 'neon_auth' and tablename = 'users_sync'`;
    expect(await ask(uri, owner)).toBe('neondb_owner');
    expect((await atProvider('GET', '/users')).status).toBe(200);
    expect((await fetch(reply.body.jwks_url)).status).toBe(200);
  });

  it('shows a user in the table', async () => {
    await createUser('ann@example.com', 'Ann');
    await eventually(async () => expect(await countOf('ann@example.com', `and name = 'Ann'`)).toBe('1'));
  });

  it('follows what an application changes and deletes at the provider', async () => {
    const { id } = (await (await atProvider('POST', '/users', { primary_email: 'bob@example.com' })).json()) as {
      id: string;
    };
    await atProvider('PATCH', `/users/${id}`, { display_name: 'Bob' });
    await eventually(async () => expect(await countOf('bob@example.com', `and name = 'Bob'`)).toBe('1'));
    expect((await program.api('DELETE', `/projects/${project_id}/auth/users/${id}`)).status).toBe(204);
    await eventually(async () => expect(await countOf('bob@example.com', 'and deleted_at is not null')).toBe('1'));
  });

  it('takes a person who signs up with the SDK; their token verifies with the public key set', async () => {
    const mode = (await stat(join(program.home.path, 'stack-secret'))).mode & 0o777;
    expect(mode).toBe(0o600);
    const { auth_provider_project_id: projectId, base_url: baseUrl } = keys;
    const clientWith = (publishableClientKey: string) =>
      new StackClientApp({ baseUrl, projectId, publishableClientKey, tokenStore: 'memory' });
    const client = clientWith(keys.pub_client_key);
    const order = { email: 'ada@example.com', password: 'correct horse', noRedirect: true } as const;
    const callback = { verificationCallbackUrl: 'http://localhost:3000/verify' };
    expect((await client.signUpWithCredential({ ...order, ...callback })).status).toBe('ok');
    const me = await client.getUser({ or: 'throw' });
    const { accessToken } = await me.currentSession.getTokens();
    const keySet = createRemoteJWKSet(new URL(keys.jwks_url));
    const { payload } = await jwtVerify(accessToken ?? '', keySet, { audience: projectId });
    expect(payload).toMatchObject({ sub: me.id, iss: `${baseUrl}/api/v1/projects/${projectId}` });
    const { body } = await program.api('GET', '/outbox');
    expect(body.mails).toMatchObject([{ to: 'ada@example.com', status: 'stored' }]);
    await expect(clientWith('unused').signInWithCredential(order)).rejects.toThrow(/publishable/i);
    await eventually(async () => expect(await countOf('ada@example.com', `and id = '${me.id}'`)).toBe('1'));
  });

  it('has the row before the first query of a compute that slept, and wakes none for it', async () => {
    await suspend();
    await createUser('carol@example.com');
    const { body } = await program.api('GET', `/projects/${project_id}/endpoints/${endpointId}`);
    expect(body.endpoint.current_state).toBe('idle');
    expect(await program.serverPids(endpointId)).toHaveLength(0);
    expect(await countOf('carol@example.com')).toBe('1');
  });

  it('makes the table again when its owner has dropped it, and fills it', async () => {
    await ask(uri, 'drop schema neon_auth cascade');
    await createUser('dan@example.com');
    await eventually(async () => expect(await countOf('dan@example.com')).toBe('1'));
    expect(await countOf('ann@example.com')).toBe('1');
  });

  it('leaves a branch its own copy', async () => {
    const { body } = await program.api('POST', `/projects/${project_id}/branches`, {
      endpoints: [{ type: 'read_write' }],
    });
    const child: string = body.connection_uris[0].connection_uri;
    expect(await ask(child, `select count(*) from neon_auth.users_sync where email = 'ann@example.com'`)).toBe('1');
    await createUser('fay@example.com');
    await eventually(async () => expect(await countOf('fay@example.com')).toBe('1'));
    expect(await ask(child, `select count(*) from neon_auth.users_sync where email = 'fay@example.com'`)).toBe('0');
    await program.api('DELETE', `/projects/${project_id}/branches/${body.branch.id}`);
    await program.settle(project_id);
  });
});

describe('the published client', () => {
  it('does every call of the feature', async () => {
    const client = createApiClient({
      apiKey: await program.apiKey(),
      baseURL: `http://127.0.0.1:${program.httpPort}/api/v2`,
    });
    const { data: list } = await client.listNeonAuthIntegrations(project_id);
    expect(list.data).toMatchObject([{ branch_id, db_name: 'neondb', owned_by: 'neon' }]);
    const { data: more } = await client.createNeonAuthProviderSdkKeys({ project_id, auth_provider });
    expect(more.secret_server_key).not.toBe(keys.secret_server_key);
    const { data: user } = await client.createNeonAuthNewUser({ project_id, auth_provider, email: 'sdk@example.com' });
    expect((await client.deleteNeonAuthUser(project_id, user.id)).status).toBe(204);
    const domain = 'https://app.example.com';
    await client.addNeonAuthDomainToRedirectUriWhitelist(project_id, { domain, auth_provider });
    const { data: trusted } = await client.listNeonAuthRedirectUriWhitelistDomains(project_id);
    expect(trusted.domains).toEqual([{ domain, auth_provider }]);
    await client.deleteNeonAuthDomainFromRedirectUriWhitelist(project_id, { auth_provider, domains: [{ domain }] });
    const { data: oauth } = await client.listNeonAuthOauthProviders(project_id);
    expect(oauth.providers).toEqual([]);
    expect((await client.getNeonAuth(project_id, branch_id)).data.auth_provider).toBe('stack');
    const { data: transfer } = await client.transferNeonAuthProviderProject({ project_id, auth_provider });
    expect(new URL(transfer.url).pathname).toMatch(/transfer\/confirm$/);
  });
});

describe('sign-ups while the compute sleeps, wakes and restarts', () => {
  it(`${signUps} of them are all there, once each`, { timeout: 600_000 }, async () => {
    let isDone = false;
    const disturb = async () => {
      while (!isDone) {
        const [action] = ['suspend', 'restart', 'query'].sort(() => Math.random() - 0.5);
        if (action === 'query') await ask(uri, 'select count(*) from neon_auth.users_sync').catch(() => {});
        else await program.api('POST', `/projects/${project_id}/endpoints/${endpointId}/${action}`);
        await program.settle(project_id);
      }
    };
    const disturbance = disturb();
    for (let n = 0; n < signUps; n++) {
      const password = `correct horse ${n}`;
      const reply = await fetch(`${keys.base_url}/api/v1/auth/password/sign-up`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-stack-access-type': 'client',
          'x-stack-project-id': keys.auth_provider_project_id,
          'x-stack-publishable-client-key': keys.pub_client_key,
        },
        body: JSON.stringify({ email: `n${n}@crowd.test`, password }),
      });
      expect([reply.status, n]).toEqual([200, n]);
    }
    isDone = true;
    await disturbance;
    const client = new pg.Client({ connectionString: uri });
    await client.connect();
    try {
      await eventually(async () => {
        const users = await drizzle(client).select({ id: usersSync.id, email: usersSync.email }).from(usersSync);
        const crowd = users.map(({ email }) => email ?? '').filter((email) => email.endsWith('@crowd.test'));
        expect(new Set(crowd).size).toBe(signUps);
        expect(crowd).toHaveLength(signUps);
      });
    } finally {
      await client.end();
    }
  });
});

describe('deleting the integration', () => {
  it('drops the schema with the data, also of a compute that sleeps', async () => {
    await suspend();
    const reply = await program.api('DELETE', `/projects/${project_id}/auth/integration/stack`, { delete_data: true });
    expect(reply.status).toBe(200);
    expect(await ask(uri, `select count(*) from pg_namespace where nspname = 'neon_auth'`)).toBe('0');
    await eventually(async () => expect((await atProvider('GET', '/users')).status).toBe(400));
  });

  it('without it keeps the rows, and a new one takes them up', async () => {
    const create = () => program.api('POST', '/projects/auth/create', { auth_provider, project_id, branch_id });
    keys = (await create()).body;
    await createUser('kept@example.com');
    await eventually(async () => expect(await countOf('kept@example.com')).toBe('1'));
    await program.api('DELETE', `/projects/${project_id}/branches/${branch_id}/auth`);
    await atProvider('POST', '/users', { primary_email: 'meanwhile@example.com' });
    expect(await countOf('kept@example.com')).toBe('1');
    const again = (await create()).body;
    expect(again.auth_provider_project_id).toBe(keys.auth_provider_project_id);
    await eventually(async () => expect(await countOf('meanwhile@example.com')).toBe('1'));
    expect(await ask(uri, `select count(*) from neon_auth.users_sync`)).toBe('2');
  });
});

describe('a transfer of ownership', () => {
  const inBrowser = async (url: string, cookie: string, form?: Record<string, string>) => {
    const init = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) };
    const reply = await fetch(url, { ...init, redirect: 'manual', headers: { cookie } });
    const text = await reply.text();
    return {
      text,
      status: reply.status,
      cookie: reply.headers.get('set-cookie')?.split(';')[0] ?? cookie,
      mark: /name="mark" value="([^"]+)"/.exec(text)?.[1] ?? '',
    };
  };

  it('goes from the API over the page to the new owner, and everything goes on', async () => {
    const transfer = () => program.api('POST', '/projects/auth/transfer_ownership', { project_id, auth_provider });
    const [{ body: first }, { body: second }] = [await transfer(), await transfer()];
    const integration = async () =>
      (await program.api('GET', `/projects/${project_id}/auth/integrations`)).body.data[0];
    expect(await integration()).toMatchObject({ owned_by: 'neon', transfer_status: 'initiated' });
    const place = new URL(first.url);
    const stranger = await inBrowser(first.url, '');
    expect([stranger.status, stranger.text.includes('Take over app')]).toEqual([200, true]);
    const person = { mark: stranger.mark, email: 'new-owner@example.com', password: 'a long password', name: 'Olga' };
    const signedUp = await inBrowser(`${keys.base_url}/sign-up`, stranger.cookie, person);
    const asked = await inBrowser(first.url, signedUp.cookie);
    const code = place.searchParams.get('code') ?? '';
    const done = await inBrowser(`${place.origin}${place.pathname}`, asked.cookie, { mark: asked.mark, code });
    expect([done.status, done.text.includes('Ownership was transferred.')]).toEqual([200, true]);
    await eventually(async () =>
      expect(await integration()).toMatchObject({ owned_by: 'user', transfer_status: 'finished' }),
    );
    // Used, and overtaken by it: nothing more comes of either.
    for (const { url } of [first, second]) expect((await inBrowser(url, '')).status).toBeGreaterThanOrEqual(400);
    expect((await transfer()).status).toBe(409);
    const dashboard = `${keys.base_url}/dashboard/projects/${keys.auth_provider_project_id}`;
    expect((await inBrowser(dashboard, asked.cookie)).text).toContain('kept@example.com');
    await createUser('after@example.com');
    await eventually(async () => expect(await countOf('after@example.com')).toBe('1'));
    expect((await atProvider('GET', '/users')).status).toBe(200);
  });
});
