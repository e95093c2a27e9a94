import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  basic,
  keyHeaders,
  makeAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../../test/helpers/auth-provider.ts';

let provider: TestAuthProvider;
let project: ProvisionedProject;
let other: ProvisionedProject;
beforeAll(async () => {
  provider = await makeAuthProvider();
  project = await provider.provision();
  other = await provider.provision('other');
});
afterAll(() => provider.close());

const known = (reply: { status: number; headers: Readonly<Record<string, unknown>>; body: { code?: string } }) => {
  expect(reply.headers['x-stack-known-error']).toBe(reply.body.code);
  expect(reply.headers['x-hexclave-known-error']).toBe(reply.body.code);
  return [reply.status, reply.body.code];
};

describe('provisioning', () => {
  test('gives a project with an admin key, as the original does', async () => {
    const made = await provider.call('POST', '/integrations/neon/projects/provision', basic, { display_name: 'shop' });
    expect(made.status).toBe(200);
    expect(made.body.super_secret_admin_key).toMatch(/^sak_[0-9a-hjkmnp-tv-z]{45}$/);
    const admin = keyHeaders('admin', made.body.project_id, made.body.super_secret_admin_key);
    const { body } = await provider.call('GET', '/integrations/neon/projects/current', admin);
    expect(body).toMatchObject({ id: made.body.project_id, display_name: 'shop', owner_team_id: null });
    expect(body.config).toMatchObject({ allow_localhost: true, credential_enabled: true, sign_up_enabled: true });
    expect([body.config.oauth_providers, body.config.enabled_oauth_providers]).toEqual([[], []]);
  });

  test('needs the secret of the integration; what is wrong is a schema error', async () => {
    const wrong = ['', 'Basic', 'Basic !!', `Basic ${btoa('catnap:wrong')}`, `Basic ${btoa('nobody:')}`, 'Bearer x'];
    for (const authorization of [...wrong, `Basic ${btoa('__proto__:x')}`]) {
      const reply = await provider.call('POST', '/integrations/neon/projects/provision', { authorization }, {});
      expect(known(reply)).toEqual([400, 'SCHEMA_ERROR']);
      expect(reply.body.details.message).toContain('client_id:client_secret');
    }
  });

  test('keeps only hashes of keys', async () => {
    const rows = await provider.core.database.sql`select * from stack_key_sets`;
    const text = JSON.stringify(rows);
    for (const key of [project.adminKey, project.publishableKey, project.secretKey]) expect(text).not.toContain(key);
  });

  test('a deleted project is gone with all it had', async () => {
    const gone = await provider.provision('gone');
    await provider.call('POST', '/users', gone.server, { display_name: 'x' });
    expect((await provider.call('DELETE', '/internal/projects/current', gone.admin, {})).body).toEqual({
      success: true,
    });
    expect(known(await provider.call('GET', '/users', gone.server))).toEqual([400, 'CURRENT_PROJECT_NOT_FOUND']);
  });
});

describe('access', () => {
  test('both families of headers work', async () => {
    for (const family of ['stack', 'hexclave']) {
      const headers = keyHeaders('server', project.id, project.secretKey, family);
      expect((await provider.call('GET', '/users', headers)).status).toBe(200);
      expect((await provider.call('GET', '/stack/api/latest/users', headers)).status).toBe(200);
    }
  });

  test.each([
    ['no access type', {}, 400, 'ACCESS_TYPE_REQUIRED'],
    ['a key and no access type', { 'x-stack-secret-server-key': 'ssk_x' }, 400, 'PROJECT_KEY_WITHOUT_ACCESS_TYPE'],
    ['a type that is none', { 'x-stack-access-type': 'root' }, 400, 'INVALID_ACCESS_TYPE'],
    ['no project', { 'x-stack-access-type': 'server' }, 400, 'ACCESS_TYPE_WITHOUT_PROJECT_ID'],
    ['an id that is none', keyHeaders('server', 'x', 'ssk_x'), 400, 'CURRENT_PROJECT_NOT_FOUND'],
    [
      'an unknown project',
      keyHeaders('server', '00000000-0000-4000-8000-000000000009', 'ssk_x'),
      400,
      'CURRENT_PROJECT_NOT_FOUND',
    ],
    [
      'internal by its number',
      keyHeaders('client', '00000000-0000-4000-8000-000000000001'),
      400,
      'CURRENT_PROJECT_NOT_FOUND',
    ],
  ])('%s', async (_name, headers, status, code) => {
    expect(known(await provider.call('GET', '/users', headers))).toEqual([status, code]);
  });

  test('keys open what they are for, in their own project only', async () => {
    const { id, secretKey, publishableKey, adminKey } = project;
    const attempts = [
      [keyHeaders('server', id), 'SERVER_AUTHENTICATION_REQUIRED'],
      [keyHeaders('admin', id), 'ADMIN_AUTHENTICATION_REQUIRED'],
      [keyHeaders('server', id, publishableKey), 'INVALID_SECRET_SERVER_KEY'],
      [keyHeaders('server', id, adminKey), 'INVALID_SECRET_SERVER_KEY'],
      [keyHeaders('server', id, other.secretKey), 'INVALID_SECRET_SERVER_KEY'],
      [keyHeaders('admin', id, secretKey), 'INVALID_SUPER_SECRET_ADMIN_KEY'],
      [keyHeaders('client', id, secretKey), 'INVALID_PUBLISHABLE_CLIENT_KEY'],
      [keyHeaders('client', id, publishableKey), 'INSUFFICIENT_ACCESS_TYPE'],
    ] as const;
    for (const [headers, code] of attempts) {
      expect(known(await provider.call('GET', '/users', headers))).toEqual([401, code]);
    }
    expect((await provider.call('GET', '/users', project.admin)).status).toBe(200);
    const asServer = await provider.call('GET', '/integrations/neon/domains', project.server);
    expect(known(asServer)).toEqual([401, 'INSUFFICIENT_ACCESS_TYPE']);
  });

  test('a refusal is 200 with the true status in a header when the client asks for that', async () => {
    const reply = await provider.call('GET', '/users', { 'x-hexclave-override-error-status': 'true' });
    expect(reply.status).toBe(200);
    expect(reply.headers).toMatchObject({ 'x-stack-actual-status': '400', 'x-hexclave-actual-status': '400' });
    expect(reply.body.code).toBe('ACCESS_TYPE_REQUIRED');
  });

  test('pages of any origin may call, with every header of both families', async () => {
    const reply = await provider.call('OPTIONS', '/users/me', { origin: 'https://app.example' });
    expect(reply.status).toBe(200);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
    expect(reply.headers['access-control-allow-headers']).toContain('x-hexclave-access-token');
    expect(reply.headers['access-control-allow-headers']).toContain('x-stack-access-token');
  });
});

test('what this provider does not have is a 404 that any page may read', async () => {
  const reply = await provider.call('POST', '/analytics/events/batch', project.client, {});
  expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([404, '*']);
  expect((await provider.call('GET', '/stack/nowhere')).status).toBe(404);
});

test('links for owners of projects never lead to somebody’s localhost', async () => {
  const body = { email: 'x@example.com', callback_url: 'http://localhost:3000/steal' };
  const reply = await provider.call('POST', '/auth/password/send-reset-code', keyHeaders('client', 'internal'), body);
  expect(known(reply)).toEqual([400, 'REDIRECT_URL_NOT_WHITELISTED']);
});

describe('key sets', () => {
  test('show keys once, then the last four characters; revoking ends them', async () => {
    const made = await provider.call('POST', '/integrations/neon/api-keys', project.admin, {
      description: 'rotation',
      expires_at_millis: Date.now() + 60_000,
      has_publishable_client_key: true,
      has_secret_server_key: true,
      has_super_secret_admin_key: false,
    });
    expect(made.body).toMatchObject({ description: 'rotation' });
    expect(made.body.super_secret_admin_key).toBeUndefined();
    const key: string = made.body.secret_server_key;
    const headers = keyHeaders('server', project.id, key);
    expect((await provider.call('GET', '/users', headers)).status).toBe(200);
    const path = `/integrations/neon/api-keys/${made.body.id}`;
    const shown = await provider.call('GET', path, project.admin);
    expect(shown.body.secret_server_key).toEqual({ last_four: key.slice(-4) });
    expect(known(await provider.call('GET', path, other.admin))).toEqual([404, 'API_KEY_NOT_FOUND']);
    expect(known(await provider.call('PATCH', path, other.admin, { revoked: true }))).toEqual([
      404,
      'API_KEY_NOT_FOUND',
    ]);
    const revoked = await provider.call('PATCH', path, project.admin, { revoked: true });
    expect(revoked.body.manually_revoked_at_millis).toBeGreaterThan(0);
    expect(known(await provider.call('GET', '/users', headers))).toEqual([401, 'INVALID_SECRET_SERVER_KEY']);
    expect((await provider.call('GET', '/users', project.server)).status).toBe(200);
  });
});

describe('domains and OAuth providers', () => {
  test('domains are added, listed in order and removed', async () => {
    const path = '/integrations/neon/domains';
    for (const domain of ['https://b.example', 'https://*.a.example:8443', 'https://b.example']) {
      const reply = await provider.call('POST', path, project.admin, { domain });
      expect([reply.status, reply.body]).toEqual([201, { domain }]);
    }
    const list = async () =>
      (await provider.call('GET', path, project.admin)).body.items.map((item: { domain: string }) => item.domain);
    expect(await list()).toEqual(['https://*.a.example:8443', 'https://b.example']);
    for (const domain of [
      'b.example',
      'https://b.example/',
      'https://b.example/x',
      'https://b?x',
      'ftp://b',
      '',
      'https://a b',
      'https://u@b',
      'https://b:99999',
      `https://${'*a'.repeat(9)}`,
    ]) {
      expect(known(await provider.call('POST', path, project.admin, { domain }))).toEqual([400, 'SCHEMA_ERROR']);
    }
    const removed = await provider.call(
      'DELETE',
      `${path}/${encodeURIComponent('https://b.example')}`,
      project.admin,
      {},
    );
    expect(removed.body).toEqual({ success: true });
    expect(await list()).toEqual(['https://*.a.example:8443']);
  });

  describe('OAuth providers', () => {
    const path = '/integrations/neon/oauth-providers';
    const add = (body: object) => provider.call('POST', path, project.admin, body);
    const own = { client_id: 'c', client_secret: 'very-secret-client-secret' };

    test('are added, changed and removed; their secrets are sealed', async () => {
      const added = await add({ id: 'microsoft', type: 'standard', ...own, microsoft_tenant_id: 't' });
      const shown = { id: 'microsoft', type: 'standard', ...own, microsoft_tenant_id: 't' };
      expect([added.status, added.body]).toEqual([201, shown]);
      const rows = await provider.core.database
        .sql`select encode(client_secret, 'escape') as text from stack_oauth_providers`;
      expect(JSON.stringify(rows)).not.toContain(own.client_secret);
      expect((await add({ id: 'microsoft', ...own })).status).toBe(400);
      const change = { client_id: 'd' };
      expect((await provider.call('PATCH', `${path}/microsoft`, project.admin, change)).body).toEqual({
        ...shown,
        client_id: 'd',
      });
      expect((await provider.call('GET', path, project.admin)).body.items).toEqual([{ ...shown, client_id: 'd' }]);
      const current = await provider.call('GET', '/projects/current', project.client);
      expect(current.body.config.enabled_oauth_providers).toEqual([{ id: 'microsoft' }]);
      expect((await provider.call('DELETE', `${path}/microsoft`, project.admin, {})).body).toEqual({ success: true });
      expect((await provider.call('DELETE', `${path}/microsoft`, project.admin, {})).status).toBe(404);
    });

    test.each([
      ['shared keys', { id: 'google', type: 'shared' }, 422, 'hosted service'],
      ['no credentials', { id: 'google' }, 422, 'hosted service'],
      ['half of them', { id: 'google', client_id: 'c' }, 422, 'client_secret'],
      ['an unknown id', { id: 'facebook', ...own }, 400, 'google, github, microsoft, vercel'],
      ['a tenant that is an address', { id: 'microsoft', ...own, microsoft_tenant_id: 'a/b' }, 400, 'tenant'],
    ])('with %s are refused', async (_what, body, status, words) => {
      const reply = await add(body);
      expect([reply.status, JSON.stringify(reply.body)]).toEqual([status, expect.stringContaining(words)]);
      expect((await provider.call('GET', path, project.admin)).body.items).toEqual([]);
    });

    test('are not changed to shared ones', async () => {
      await add({ id: 'google', ...own });
      expect((await provider.call('PATCH', `${path}/google`, project.admin, { type: 'shared' })).status).toBe(422);
    });
  });
});

test('a project is changed by its administrators, in what this provider has', async () => {
  const path = '/integrations/neon/projects/current';
  const changed = await provider.call('PATCH', path, project.admin, {
    display_name: 'renamed',
    config: { sign_up_enabled: false, domains: [{ domain: 'https://c.example', handler_path: '/h' }] },
  });
  expect(changed.body).toMatchObject({ display_name: 'renamed', config: { sign_up_enabled: false } });
  expect(changed.body.config.domains).toEqual([{ domain: 'https://c.example', handler_path: '/h' }]);
  expect(known(await provider.call('PATCH', path, project.admin, { config: { magic_link_enabled: true } }))).toEqual([
    400,
    'SCHEMA_ERROR',
  ]);
  expect((await provider.call('GET', '/projects/current', project.client)).body.display_name).toBe('renamed');
  await provider.call('PATCH', path, project.admin, { config: { sign_up_enabled: true, domains: [] } });
});
