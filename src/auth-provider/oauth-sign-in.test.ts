/** Signing in with an OAuth provider, against a real OpenID server; the application is played by the test. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OauthApp, redirectUri } from '../../test/helpers/oauth-app.ts';
import { type OpenIdServer, startOpenIdServer } from '../../test/helpers/openid-server.ts';
import { openMail } from './core/mails.ts';
import { selectMails } from './statements/mails.ts';

let openId: OpenIdServer;
let app: OauthApp;

beforeAll(async () => {
  openId = await startOpenIdServer();
  app = await OauthApp.create(openId);
});
beforeEach(async () => {
  openId.people.clear();
  openId.people.set('ada', { email: 'ada@example.com', email_verified: true, name: 'Ada L' });
  await app.restart();
});
afterAll(async () => {
  await app.provider.close();
  await openId.close();
});

describe('a person who signs in', () => {
  test('becomes a user, is one user the next time, and refreshes', async () => {
    const first = await app.signIn('ada');
    expect(first).toMatchObject({ token_type: 'Bearer', is_new_user: true });
    expect(await app.me(first.access_token)).toMatchObject({
      display_name: 'Ada L',
      primary_email: 'ada@example.com',
      primary_email_verified: true,
      has_password: false,
      oauth_providers: [{ id: 'google', account_id: 'ada', email: 'ada@example.com' }],
    });
    const again = await app.signIn('ada');
    expect(again.is_new_user).toBe(false);
    expect(await app.users()).toHaveLength(1);
    const refreshed = await app.redeem(null, '', { grant_type: 'refresh_token', refresh_token: again.refresh_token });
    expect((await app.me(refreshed.body.access_token)).display_name).toBe('Ada L');
    const changes = await app.provider.core.database
      .sql`select kind, user_json from stack_user_changes where project_id = ${app.project.id}`;
    expect(changes).toMatchObject([{ kind: 'created', userJson: { oauth_providers: [{ id: 'google' }] } }]);
  });

  test('returns to the application with its own state, and hears where to go on', async () => {
    const after = 'http://localhost:3000/welcome';
    const { codeVerifier, returned } = await app.visit('ada', 'google', { after_callback_redirect_url: after });
    const { status, location, query } = await app.comeBack(returned);
    expect([status, query.get('state')]).toEqual([303, 'state of the app']);
    expect(location.startsWith(`${redirectUri}?`)).toBe(true);
    expect((await app.redeem(query.get('code'), codeVerifier)).body.after_callback_redirect_url).toBe(after);
  });

  test.each([
    ['the profile in the id token', { fullIdToken: true }],
    ['the secret in the form', { authMethod: 'client_secret_post' }],
  ] as const)('may come from a server with %s', async (_what, options) => {
    const other = await OauthApp.create(openId);
    try {
      openId.allow([other.callback('corp')], options);
      await other.restart(['corp']);
      const { access_token: token } = await other.signIn('ada', 'corp');
      expect((await other.me(token)).primary_email).toBe('ada@example.com');
    } finally {
      openId.allow(['google', 'corp'].map((id) => app.callback(id)));
      await other.provider.close();
    }
  });

  test('is not the same person as one of that id at another provider', async () => {
    openId.people.set('bob', { name: 'Bob' });
    await app.signIn('bob', 'google');
    expect((await app.signIn('bob', 'corp')).is_new_user).toBe(true);
    expect(await app.users()).toHaveLength(2);
  });

  test('is redirected when the application follows a link', async () => {
    const reply = await app.authorize('google', { stack_response_mode: 'redirect' });
    expect([reply.status, String(reply.headers.location).startsWith(`${openId.url}/auth?`)]).toEqual([303, true]);
    expect(reply.headers['referrer-policy']).toBe('no-referrer');
  });
});

describe('an address that somebody has already', () => {
  test('joins the two if both sides have verified it', async () => {
    const { user_id: userId } = await app.signUp('ada@example.com');
    await app.verifyMail(userId);
    const joined = await app.signIn('ada');
    expect(joined.is_new_user).toBe(false);
    expect(await app.me(joined.access_token)).toMatchObject({ id: userId, has_password: true });
    const [user] = await app.users();
    expect(user.oauth_providers).toEqual([{ id: 'google', account_id: 'ada', email: 'ada@example.com' }]);
  });

  test.each([
    ['here', true, false, true],
    ['there', false, true, false],
    ['anywhere', false, false, false],
  ])('joins nothing if it is not verified %s', async (_where, thereVerified, hereVerified, wouldWork) => {
    openId.people.set('eve', { email: 'Ada@Example.com', email_verified: thereVerified });
    const { user_id: userId } = await app.signUp('ada@example.com');
    if (hereVerified) await app.verifyMail(userId);
    const { query } = await app.comeBack((await app.visit('eve')).returned);
    expect(query.get('errorCode')).toBe('CONTACT_CHANNEL_ALREADY_USED_FOR_AUTH_BY_SOMEONE_ELSE');
    expect(JSON.parse(query.get('details') ?? '')).toMatchObject({ would_work_if_email_was_verified: wouldWork });
    expect(query.get('code')).toBeNull();
    expect(await app.users()).toMatchObject([{ id: userId, oauth_providers: [] }]);
  });

  test('is decided again when the application collects its session', async () => {
    const { codeVerifier, returned } = await app.visit('ada');
    const { query } = await app.comeBack(returned);
    await app.signUp('ada@example.com');
    const reply = await app.redeem(query.get('code'), codeVerifier);
    expect([reply.status, reply.body.code]).toEqual([409, 'CONTACT_CHANNEL_ALREADY_USED_FOR_AUTH_BY_SOMEONE_ELSE']);
    expect(await app.users()).toHaveLength(1);
  });

  test('is not taken by somebody who has not verified it there', async () => {
    openId.people.set('eve', { email: 'ada@example.com', email_verified: false });
    const eve = await app.me((await app.signIn('eve')).access_token);
    expect(eve).toMatchObject({ primary_email: 'ada@example.com', primary_email_verified: false });
    // Nobody gets into that account with a mail to the address, and the owner of the address gets one of her own.
    const ada = await app.me((await app.signIn('ada')).access_token);
    expect(ada.id).not.toBe(eve.id);
    expect(await app.users()).toHaveLength(2);
  });
});

describe('somebody who waits in an account with the address of another', () => {
  const resetWithMail = async (email: string) => {
    const { call, core, parts } = app.provider;
    const callbackUrl = { callback_url: 'http://localhost:3000/reset' };
    await call('POST', '/auth/password/send-reset-code', app.project.client, { email, ...callbackUrl });
    const [mail] = await selectMails(core.database.sql, { limit: 1 });
    const code = mail && /code=([0-9a-z]{45})/.exec(openMail(parts, mail))?.[1];
    await call('POST', '/auth/password/reset', app.project.client, { code, password: 'the owner chose it' });
  };

  test('is out when its owner resets the password', async () => {
    openId.people.set('eve', { email: 'ada@example.com', email_verified: false });
    const { access_token: token } = await app.signIn('eve');
    await app.provider.call('POST', '/auth/password/set', app.own(token), { password: 'eve chose it' });
    await resetWithMail('ada@example.com');
    expect(await app.users()).toMatchObject([{ primary_email_verified: true, oauth_providers: [] }]);
    // Her account there has nothing to do with this user any more; and the address is taken.
    const code = 'CONTACT_CHANNEL_ALREADY_USED_FOR_AUTH_BY_SOMEONE_ELSE';
    expect(await app.errorOf((await app.visit('eve')).returned)).toBe(code);
  });

  test('stays in if the address is hers, and she resets her own password', async () => {
    await app.signIn('ada');
    await resetWithMail('ada@example.com');
    expect(await app.users()).toMatchObject([{ has_password: true, oauth_providers: [{ id: 'google' }] }]);
  });
});

describe('accounts of a signed-in user', () => {
  const link = (token: string) => ({ type: 'link', token });

  test('are connected, listed and disconnected', async () => {
    const { call } = app.provider;
    const { access_token: token, user_id: userId } = await app.signUp('grace@example.com');
    const { codeVerifier, returned } = await app.visit('ada', 'google', link(token));
    const { query } = await app.comeBack(returned);
    expect((await app.me(token)).oauth_providers).toEqual([]);
    expect((await app.redeem(query.get('code'), codeVerifier)).body.is_new_user).toBe(false);
    const { body: accounts } = await call('GET', '/connected-accounts/me', app.own(token));
    expect(accounts.items).toEqual([{ user_id: userId, provider: 'google', provider_account_id: 'ada' }]);
    const { body: list } = await call('GET', '/oauth-providers?user_id=me', app.own(token));
    expect(list.items).toMatchObject([{ user_id: userId, type: 'google', email: 'ada@example.com' }]);
    const one = `/oauth-providers/me/${list.items[0].id}`;
    expect((await call('GET', one, app.own(token))).body).toEqual(list.items[0]);
    expect((await call('PATCH', one, app.own(token), { allow_sign_in: false })).status).toBe(400);
    expect((await call('DELETE', one, app.own(token))).body).toEqual({ success: true });
    expect((await call('DELETE', one, app.own(token))).status).toBe(404);
    expect((await app.me(token)).oauth_providers).toEqual([]);
  });

  test('have no access tokens here, which is said', async () => {
    const { access_token: token } = await app.signIn('ada');
    for (const path of ['google/access-token', 'google/ada/access-token']) {
      const reply = await app.provider.call('POST', `/connected-accounts/me/${path}`, app.own(token), { scope: 'x' });
      expect([reply.status, reply.body.code]).toEqual([400, 'OAUTH_ACCESS_TOKEN_NOT_AVAILABLE']);
    }
    const again = await app.authorize('google', link(token));
    expect([again.status, again.body.code]).toEqual([409, 'USER_ALREADY_CONNECTED_TO_ANOTHER_OAUTH_CONNECTION']);
  });

  test('that belong to somebody else are not connected', async () => {
    await app.signIn('ada');
    const { access_token: token } = await app.signUp('grace@example.com');
    const { returned } = await app.visit('ada', 'google', link(token));
    expect(await app.errorOf(returned)).toBe('OAUTH_CONNECTION_ALREADY_CONNECTED_TO_ANOTHER_USER');
  });

  test('stay when they are the only way in', async () => {
    const { access_token: token } = await app.signIn('ada');
    const { body: list } = await app.provider.call('GET', '/oauth-providers?user_id=me', app.own(token));
    const reply = await app.provider.call('DELETE', `/oauth-providers/me/${list.items[0].id}`, app.own(token));
    expect([reply.status, reply.body]).toEqual([400, expect.stringContaining('only way')]);
    expect((await app.me(token)).oauth_providers).toHaveLength(1);
  });
});
