/** What is refused on the way to an OAuth provider and back. The other side is a real OpenID server. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OauthApp } from '../../test/helpers/oauth-app.ts';
import { type OpenIdServer, startOpenIdServer } from '../../test/helpers/openid-server.ts';

let aheadMs = 0;
const clock = { now: () => new Date(Date.now() + aheadMs) };
let openId: OpenIdServer;
let app: OauthApp;

beforeAll(async () => {
  openId = await startOpenIdServer();
  openId.people.set('ada', { email: 'ada@example.com', email_verified: true });
  openId.people.set('bob', { email: 'bob@example.com', email_verified: true });
  app = await OauthApp.create(openId, { clock });
});
beforeEach(async () => {
  aheadMs = 0;
  await app.restart();
});
afterAll(async () => {
  await app.provider.close();
  await openId.close();
});

describe('what comes back is refused', () => {
  test('with a state that is not ours, and with one that was used', async () => {
    const { returned } = await app.visit('ada');
    expect(await app.comeBack(returned, { state: 'x'.repeat(45) })).toMatchObject({ status: 400, location: '' });
    expect((await app.comeBack(returned)).query.get('code')).not.toBeNull();
    const replayed = await app.comeBack(returned);
    expect([replayed.status, replayed.location]).toEqual([400, '']);
    expect(replayed.body).toContain('Go back to the application');
  });

  test('at the address of another provider', async () => {
    const { returned } = await app.visit('ada');
    const reply = await app.comeBack(returned.replace('/callback/google', '/callback/corp'));
    expect([reply.status, reply.location]).toEqual([400, '']);
  });

  test.each([
    ['a nonce that is not ours', 'nonce'],
    ['a code for another verifier', 'code_challenge'],
  ])('with %s', async (_what, parameter) => {
    const { returned } = await app.visit('ada', 'google', {}, { [parameter]: 'x'.repeat(43) });
    expect(await app.errorOf(returned)).toBe('INVALID_AUTHORIZATION_CODE');
    expect(await app.users()).toEqual([]);
  });

  test.each([
    ['with a code that is not one of the server', { code: 'made up' }],
    ['in the name of another issuer', { iss: 'https://evil.example' }],
  ])('%s', async (_what, changed) => {
    expect(await app.errorOf((await app.visit('ada')).returned, changed)).toBe('INVALID_AUTHORIZATION_CODE');
  });

  test('with a code that the server has taken already', async () => {
    const first = await app.visit('ada');
    const second = await app.visit('ada');
    expect(await app.errorOf(first.returned)).toBeNull();
    const code = new URL(first.returned).searchParams.get('code') ?? '';
    expect(await app.errorOf(second.returned, { code })).toBe('INVALID_AUTHORIZATION_CODE');
  });

  test('after more than ten minutes', async () => {
    const { returned } = await app.visit('ada');
    aheadMs = 601_000;
    expect(await app.errorOf(returned)).toBe('OUTER_OAUTH_TIMEOUT');
  });

  test('when the person said no', async () => {
    const { query } = await app.comeBack((await app.visit('')).returned);
    expect(query.get('errorCode')).toBe('OAUTH_PROVIDER_ACCESS_DENIED');
    expect([query.get('error'), query.get('state')]).toEqual(['access_denied', 'state of the app']);
  });

  test('when the provider was removed, or the application is not trusted any more', async () => {
    const first = await app.visit('ada');
    const second = await app.visit('ada');
    await app.provider.call('DELETE', '/integrations/neon/oauth-providers/google', app.project.admin);
    expect(await app.errorOf(first.returned)).toBe('OAUTH_PROVIDER_NOT_FOUND_OR_NOT_ENABLED');
    await app.configure({ allow_localhost: false });
    expect(await app.comeBack(second.returned)).toMatchObject({ status: 400, location: '' });
  });

  test('when our credentials are wrong there', async () => {
    const change = { client_secret: 'another' };
    await app.provider.call('PATCH', '/integrations/neon/oauth-providers/google', app.project.admin, change);
    expect(await app.errorOf((await app.visit('ada')).returned)).toBe('OAUTH_PROVIDER_TEMPORARILY_UNAVAILABLE');
  });

  test('when the project takes nobody new, but those it has may enter', async () => {
    await app.signIn('ada');
    await app.configure({ sign_up_enabled: false });
    expect(await app.errorOf((await app.visit('bob')).returned)).toBe('SIGN_UP_NOT_ENABLED');
    expect((await app.signIn('ada')).is_new_user).toBe(false);
  });
});

describe('the code of the application', () => {
  const arrive = async () => {
    const { codeVerifier, returned } = await app.visit('ada');
    return { codeVerifier, code: (await app.comeBack(returned)).query.get('code') };
  };
  const refused = { status: 400, body: { code: 'INVALID_AUTHORIZATION_CODE' } };

  test('works once', async () => {
    const { code, codeVerifier } = await arrive();
    expect((await app.redeem(code, codeVerifier)).status).toBe(200);
    expect(await app.redeem(code, codeVerifier)).toMatchObject(refused);
  });

  test('needs the verifier, and is used up without it', async () => {
    const { code, codeVerifier } = await arrive();
    expect(await app.users()).toEqual([]);
    expect(await app.redeem(code, 'x'.repeat(43))).toMatchObject(refused);
    expect(await app.redeem(code, codeVerifier)).toMatchObject(refused);
    expect(await app.users()).toEqual([]);
  });

  test.each([
    ['another address', { redirect_uri: 'http://localhost:3000/other' }, 0],
    ['somebody who is a minute late', {}, 61_000],
  ])('does not work for %s', async (_what, more, laterMs) => {
    const { code, codeVerifier } = await arrive();
    aheadMs = laterMs;
    expect(await app.redeem(code, codeVerifier, more)).toMatchObject(refused);
  });

  test('does not work for another project', async () => {
    const { code, codeVerifier } = await arrive();
    const other = await app.provider.provision();
    const client = { client_id: other.id, client_secret: other.publishableKey };
    expect(await app.redeem(code, codeVerifier, client)).toMatchObject(refused);
    expect((await app.redeem(code, codeVerifier)).status).toBe(200);
  });

  test.each(['code', 'redirect_uri', 'code_verifier'])('comes with %s', async (field) => {
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code: 'c',
      redirect_uri: 'http://localhost',
      code_verifier: 'v',
      client_id: app.project.id,
    });
    form.delete(field);
    const reply = await app.provider.app.inject({
      method: 'POST',
      url: '/stack/api/v1/auth/oauth/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: form.toString(),
    });
    expect([reply.statusCode, reply.json().error]).toEqual([400, `body.${field} is required`]);
  });
});

describe('an application', () => {
  const elsewhere = 'https://evil.example/x';

  test.each([
    ['an address that is not trusted', { redirect_uri: elsewhere }, 'REDIRECT_URL_NOT_WHITELISTED'],
    ['such an address to go on at', { after_callback_redirect_url: elsewhere }, 'REDIRECT_URL_NOT_WHITELISTED'],
    ['a wrong key', { client_secret: 'pck_wrong' }, 'INVALID_OAUTH_CLIENT_ID_OR_SECRET'],
    ['no such project', { client_id: 'nobody' }, 'INVALID_OAUTH_CLIENT_ID_OR_SECRET'],
    ['no PKCE', { code_challenge_method: 'plain' }, 'SCHEMA_ERROR'],
    ['scopes for tokens that are not kept', { provider_scope: 'calendar' }, 'SCHEMA_ERROR'],
    ['no token to connect with', { type: 'link' }, 'SCHEMA_ERROR'],
  ])('with %s is refused and redirected nowhere', async (_what, more, code) => {
    const reply = await app.authorize('google', more);
    expect([reply.status, reply.body.code, reply.headers.location]).toEqual([400, code, undefined]);
  });

  test('that follows a link with an address that is not trusted shows a page', async () => {
    const reply = await app.authorize('google', { redirect_uri: elsewhere, stack_response_mode: 'redirect' });
    expect([reply.status, reply.headers.location]).toEqual([400, undefined]);
    expect(reply.body).toContain('not in a trusted domain');
  });

  test.each(['github', 'nonsense'])('that asks for %s, which the project has not, hears so', async (id) => {
    const code = 'OAUTH_PROVIDER_NOT_FOUND_OR_NOT_ENABLED';
    expect((await app.authorize(id)).body.code).toBe(code);
    const followed = await app.authorize(id, { stack_response_mode: 'redirect' });
    expect(new URL(String(followed.headers.location)).searchParams.get('errorCode')).toBe(code);
  });

  test('hears that a server is down', async () => {
    const reply = await app.authorize('down');
    expect([reply.status, reply.body.code]).toEqual([503, 'OAUTH_PROVIDER_TEMPORARILY_UNAVAILABLE']);
  });

  test('sees which providers can be used, and no others', async () => {
    const { call, provision } = app.provider;
    const { body } = await call('GET', '/projects/current', app.project.client);
    expect(body.config.enabled_oauth_providers).toEqual([{ id: 'google' }, { id: 'corp' }, { id: 'down' }]);
    const fresh = await provision();
    const { body: other } = await call('GET', '/projects/current', fresh.client);
    expect(other.config.enabled_oauth_providers).toEqual([]);
  });
});
