import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  makeAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../../test/helpers/auth-provider.ts';
import { openMail } from '../core/mails.ts';
import { selectMails } from '../statements/mails.ts';

let nowMs = Date.now();
const clock = { now: () => new Date(nowMs) };
let provider: TestAuthProvider;
let project: ProvisionedProject;
beforeAll(async () => {
  provider = await makeAuthProvider({ clock, limitsAddresses: false });
});
beforeEach(async () => {
  nowMs += 86_400_000;
  project = await provider.provision();
});
afterAll(() => provider.close());

const email = 'ada@example.com';
const password = 'correct horse';
const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  provider.call('POST', path, { ...project.client, ...headers }, body);
const signUp = async (more: object = {}) => (await post('/auth/password/sign-up', { email, password, ...more })).body;
const signIn = (given: string, from?: string) =>
  post('/auth/password/sign-in', { email: from ?? email, password: given });
const me = (accessToken: string) =>
  provider.call('GET', '/users/me', { ...project.client, 'x-hexclave-access-token': accessToken });

async function refresh(token: string, more: Record<string, string> = {}) {
  const form = { grant_type: 'refresh_token', refresh_token: token, client_id: project.id, ...more };
  const reply = await provider.app.inject({
    method: 'POST',
    url: '/stack/api/v1/auth/oauth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({ client_secret: project.publishableKey, ...form }).toString(),
  });
  return { status: reply.statusCode, body: reply.json() };
}

const lastMail = async () => {
  const [mail] = await selectMails(provider.core.database.sql, { limit: 1 });
  if (mail === undefined) throw new Error('the outbox is empty');
  const text = openMail(provider.parts, mail);
  return { ...mail, text, code: /code=([0-9a-z]{45})/.exec(text)?.[1] ?? '' };
};

describe('sign-up', () => {
  test.each([
    ['a short password', { password: 'short' }, 400, 'PASSWORD_TOO_SHORT', { min_length: 8 }],
    ['a long password', { password: 'x'.repeat(71) }, 400, 'PASSWORD_TOO_LONG', { maxLength: 70 }],
    ['an address without a dot', { email: 'ada@localhost' }, 400, 'SCHEMA_ERROR', undefined],
    ['an address with two dots', { email: 'a..b@example.com' }, 400, 'SCHEMA_ERROR', undefined],
    [
      'an untrusted callback',
      { verification_callback_url: 'https://evil.example/x' },
      400,
      'REDIRECT_URL_NOT_WHITELISTED',
      undefined,
    ],
    [
      'a callback that pretends',
      { verification_callback_url: 'http://localhost@evil.example' },
      400,
      'REDIRECT_URL_NOT_WHITELISTED',
      undefined,
    ],
  ])('refuses %s and makes nobody', async (_name, body, status, code, details) => {
    const reply = await post('/auth/password/sign-up', { email, password, ...body });
    expect([reply.status, reply.body.code]).toEqual([status, code]);
    if (details !== undefined) expect(reply.body.details).toEqual(details);
    expect((await provider.call('GET', '/users', project.server)).body.items).toEqual([]);
  });

  test('is refused where the project does not want it', async () => {
    const change = (config: object) => provider.call('PATCH', '/internal/projects/current', project.admin, { config });
    await change({ sign_up_enabled: false });
    expect((await post('/auth/password/sign-up', { email, password })).body.code).toBe('SIGN_UP_NOT_ENABLED');
    await change({ sign_up_enabled: true, credential_enabled: false });
    for (const path of ['/auth/password/sign-up', '/auth/password/sign-in']) {
      expect((await post(path, { email, password })).body.code).toBe('PASSWORD_AUTHENTICATION_NOT_ENABLED');
    }
  });

  test('of one address at once makes one user', async () => {
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => post('/auth/password/sign-up', { email, password })),
    );
    expect(replies.map((reply) => reply.status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  test('sends a code that verifies the address, once', async () => {
    const domain = { domain: 'https://*.app.example' };
    await provider.call('POST', '/integrations/neon/domains', project.admin, domain);
    const { user_id: id } = await signUp({ verification_callback_url: 'https://www.app.example/verify?x=1' });
    const mail = await lastMail();
    expect(mail).toMatchObject({ recipient: email, kind: 'email_verification' });
    expect(mail.text).toContain('https://www.app.example/verify?x=1&code=');
    expect((await post('/contact-channels/verify/check-code', { code: mail.code })).body).toEqual({
      is_code_valid: true,
    });
    expect((await post('/contact-channels/verify', { code: mail.code })).status).toBe(200);
    expect((await post('/contact-channels/verify', { code: mail.code })).body.code).toBe(
      'VERIFICATION_CODE_ALREADY_USED',
    );
    expect((await provider.call('GET', `/users/${id}`, project.server)).body.primary_email_verified).toBe(true);
    const stored = await provider.core.database.sql`select encode(body, 'escape') as body from stack_mails`;
    expect(JSON.stringify(stored)).not.toContain(mail.code);
  });
});

describe('sign-in', () => {
  test('answers a wrong password and an unknown address alike, after the same work', async () => {
    await signUp();
    const wrong = await signIn('wrong horse');
    const unknown = await signIn('wrong horse', 'nobody@example.com');
    expect([unknown.status, unknown.body]).toEqual([wrong.status, wrong.body]);
    expect(wrong.body.code).toBe('EMAIL_PASSWORD_MISMATCH');
    const timed = async (address: string) => {
      const began = performance.now();
      await signIn('wrong horse', address);
      return performance.now() - began;
    };
    const times: { known: number; absent: number }[] = [];
    // By turns, so that whatever else the machine does falls on both alike.
    for (let i = 0; i < 9; i += 1) {
      nowMs += 3_600_000;
      times.push({ known: await timed(email), absent: await timed('nobody@example.com') });
    }
    const median = (name: 'known' | 'absent') => times.map((both) => both[name]).sort((a, b) => a - b)[4] ?? 0;
    const [known, absent] = [median('known'), median('absent')];
    // Without the dummy hash an absent account answers in a tenth of the time.
    expect(absent).toBeGreaterThan(known * 0.4);
    expect(known).toBeGreaterThan(absent * 0.4);
  });

  test('is put off after ten wrong guesses at an account, and says for how long; other accounts are not', async () => {
    await signUp();
    await signUp({ email: 'bob@example.com' });
    for (let i = 0; i < 10; i += 1) expect((await signIn(`wrong horse ${i}`)).status).toBe(400);
    const put = await signIn(password);
    expect([put.status, put.headers['retry-after']]).toEqual([429, '30']);
    expect((await signIn(password, 'bob@example.com')).status).toBe(200);
    nowMs += 30_000;
    expect((await signIn(password)).status).toBe(200);
  });

  test('a user who signs in often is not put off', async () => {
    await signUp();
    for (let i = 0; i < 15; i += 1) expect((await signIn(password)).status).toBe(200);
  });

  test('addresses are limited where strangers can reach the port', async () => {
    const guarded = await makeAuthProvider({ clock, limitsAddresses: true });
    const { client } = await guarded.provision();
    const statuses: number[] = [];
    for (let i = 0; i < 32; i += 1) {
      const body = { email: `u${i}@example.com`, password: 'short' };
      statuses.push((await guarded.call('POST', '/auth/password/sign-up', client, body)).status);
    }
    await guarded.close();
    expect(statuses.filter((status) => status === 429)).toHaveLength(2);
  });
});

describe('sessions', () => {
  test('keep hashes only, and go on for a client that ignores the next token', async () => {
    const { refresh_token: token } = await signUp();
    for (let i = 0; i < 3; i += 1) {
      nowMs += 3_600_000;
      expect((await refresh(token)).status).toBe(200);
    }
    expect(JSON.stringify(await provider.core.database.sql`select * from stack_refresh_tokens`)).not.toContain(token);
  });

  test('rotate for a client that follows; an old token ends the session once the grace is over', async () => {
    const { refresh_token: first } = await signUp();
    const second = (await refresh(first)).body.refresh_token;
    expect((await refresh(first)).body.refresh_token).toBe(second);
    const third = (await refresh(second)).body;
    expect(third.refresh_token).not.toBe(second);
    nowMs += 30_000;
    expect((await refresh(first)).status).toBe(200);
    nowMs += 60_000;
    const reused = await refresh(first);
    expect([reused.status, reused.body.code]).toEqual([401, 'REFRESH_TOKEN_NOT_FOUND_OR_EXPIRED']);
    expect((await refresh(third.refresh_token)).status).toBe(401);
    expect((await me(third.access_token)).body.code).toBe('ACCESS_TOKEN_EXPIRED');
  });

  test('take turns: many refreshes at once all succeed', async () => {
    const { refresh_token: first } = await signUp();
    const second = (await refresh(first)).body.refresh_token;
    const replies = await Promise.all(Array.from({ length: 8 }, (_, at) => refresh(at % 2 === 0 ? first : second)));
    expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(new Set(replies.slice(1).map(({ body }) => body.refresh_token)).size).toBeLessThanOrEqual(2);
  });

  test('belong to their project, and to the client who knows its key', async () => {
    const { refresh_token: token, access_token: accessToken } = await signUp();
    const other = await provider.provision('other');
    const attempts = [
      { client_id: other.id, client_secret: other.publishableKey },
      { client_secret: project.secretKey },
      { client_id: 'x' },
      { grant_type: 'authorization_code' },
    ];
    const statuses = [];
    for (const more of attempts) statuses.push((await refresh(token, more)).body.code);
    expect(statuses).toEqual([
      'REFRESH_TOKEN_NOT_FOUND_OR_EXPIRED',
      'INVALID_OAUTH_CLIENT_ID_OR_SECRET',
      'INVALID_OAUTH_CLIENT_ID_OR_SECRET',
      'SCHEMA_ERROR',
    ]);
    const elsewhere = await provider.call('GET', '/users/me', { ...other.client, 'x-stack-access-token': accessToken });
    expect(elsewhere.body.code).toBe('INVALID_PROJECT_FOR_ACCESS_TOKEN');
    expect((await refresh(token)).status).toBe(200);
  });

  test('end: by signing out, by age, by a new password, with the user', async () => {
    const first = await signUp();
    const out = await provider.call(
      'DELETE',
      '/auth/sessions/current',
      { ...project.client, 'x-stack-access-token': first.access_token },
      {},
    );
    expect(out.body).toEqual({ success: true });
    expect((await me(first.access_token)).status).toBe(401);
    const second = (await signIn(password)).body;
    await provider.call('PATCH', `/users/${first.user_id}`, project.server, { password: 'another horse' });
    expect((await refresh(second.refresh_token)).status).toBe(401);
    const third = (await signIn('another horse')).body;
    nowMs += 366 * 86_400_000;
    expect((await refresh(third.refresh_token)).status).toBe(401);
    const fourth = (await signIn('another horse')).body;
    await provider.call('DELETE', `/users/${first.user_id}`, project.server, {});
    expect((await refresh(fourth.refresh_token)).status).toBe(401);
    expect((await me(fourth.access_token)).status).toBe(401);
  });

  test('of others are neither seen nor ended', async () => {
    const ada = await signUp();
    const bob = await signUp({ email: 'bob@example.com' });
    const headers = { ...project.client, 'x-stack-access-token': bob.access_token };
    expect((await provider.call('GET', `/auth/sessions?user_id=${ada.user_id}`, headers)).status).toBe(403);
    const adaSession = decodeJwt(ada.access_token).refresh_token_id;
    expect((await provider.call('DELETE', `/auth/sessions/${adaSession}`, headers, {})).status).toBe(404);
    const bobSession = decodeJwt(bob.access_token).refresh_token_id;
    const own = await provider.call('DELETE', `/auth/sessions/${bobSession}`, headers, {});
    expect(own.body.code).toBe('CANNOT_DELETE_CURRENT_SESSION');
    expect((await me(ada.access_token)).status).toBe(200);
    expect((await provider.call('GET', `/contact-channels?user_id=${ada.user_id}`, headers)).status).toBe(404);
    const seen = async ({ server }: ProvisionedProject) =>
      (await provider.call('GET', `/auth/sessions?user_id=${ada.user_id}`, server)).body.items;
    expect(await seen(project)).toHaveLength(1);
    expect(await seen(await provider.provision('other'))).toEqual([]);
  });
});

describe('access tokens', () => {
  test('run out, and say so', async () => {
    const { access_token: token } = await signUp();
    nowMs += 601_000;
    const late = await me(token);
    expect([late.status, late.body.code]).toEqual([401, 'ACCESS_TOKEN_EXPIRED']);
    expect(late.body.details.expired_at_millis).toBeGreaterThan(0);
  });

  test('that were tampered with are not parsable', async () => {
    const { access_token: token, user_id: id } = await signUp();
    const [header, , signature] = token.split('.');
    const claims = { ...decodeJwt(token), sub: '00000000-0000-4000-8000-000000000000' };
    const forged = [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.');
    const none = [
      Buffer.from(JSON.stringify({ ...decodeProtectedHeader(token), alg: 'none' })).toString('base64url'),
      token.split('.')[1],
      '',
    ].join('.');
    for (const bad of [forged, none, 'x', 'a.b.c', token.slice(0, -2)]) {
      expect((await me(bad)).body.code).toBe('UNPARSABLE_ACCESS_TOKEN');
    }
    expect((await me(token)).body.id).toBe(id);
  });

  test('of restricted users are signed with a key that the plain key set does not have', async () => {
    const { user_id: id } = await signUp();
    await provider.call('PATCH', `/users/${id}`, project.server, { restricted_by_admin: true });
    const { access_token: token } = (await signIn(password)).body;
    const claims = decodeJwt(token);
    expect(claims).toMatchObject({ aud: `${project.id}:restricted`, is_restricted: true });
    const kids = async (query: string) =>
      (await provider.call('GET', `/projects/${project.id}/.well-known/jwks.json${query}`)).body.keys.map(
        (key: { kid: string }) => key.kid,
      );
    const { kid } = decodeProtectedHeader(token);
    expect(await kids('')).not.toContain(kid);
    expect(await kids('?include_restricted=true')).toContain(kid);
  });

  test('go on to verify while keys are rotated; with a leak they are void at once', async () => {
    const path = `/projects/${project.id}/.well-known/jwks.json`;
    const kids = async () => (await provider.call('GET', path)).body.keys.map((key: { kid: string }) => key.kid);
    const first = await signUp();
    const oldKid = decodeProtectedHeader(first.access_token).kid;
    const rotated = await provider.call('POST', '/internal/signing-keys/rotate', project.admin, {});
    const newKid = rotated.body.keys[0].kid;
    expect(await kids()).toEqual([newKid, oldKid]);
    // Caches learn the new key before it signs.
    expect(decodeProtectedHeader((await refresh(first.refresh_token)).body.access_token).kid).toBe(oldKid);
    nowMs += 3_599_000;
    const lastOld = (await refresh(first.refresh_token)).body.access_token;
    nowMs += 2_000;
    const firstNew = (await refresh(first.refresh_token)).body.access_token;
    expect([lastOld, firstNew].map((token) => decodeProtectedHeader(token).kid)).toEqual([oldKid, newKid]);
    expect((await me(lastOld)).status).toBe(200);
    nowMs += 700_000;
    expect(await kids()).toEqual([newKid]);
    const before = (await refresh(first.refresh_token)).body.access_token;
    await provider.call('POST', '/internal/signing-keys/rotate', project.admin, { immediate: true });
    expect((await me(before)).status).toBe(401);
    expect((await me((await refresh(first.refresh_token)).body.access_token)).status).toBe(200);
    expect(await kids()).not.toContain(newKid);
    expect(JSON.stringify(await provider.core.database.sql`select * from stack_signing_keys`)).not.toContain('"d":');
  });
});

describe('forgotten passwords', () => {
  const forgot = (address: string) =>
    post('/auth/password/send-reset-code', { email: address, callback_url: 'http://localhost:3000/reset' });

  test.each([
    ['Ada Lovelace', 'Hello Ada Lovelace,'],
    ['you have won: https://evil.example', 'Hello,'],
    ['Ada,\n\nPlease call evil.example', 'Hello,'],
  ])('are greeted by a name, and by nothing that a stranger calls one: %j', async (name, greeting) => {
    const { user_id: userId } = await signUp();
    await provider.core.database.sql`update stack_users set display_name = ${name} where id = ${userId}`;
    await forgot(email);
    expect((await lastMail()).text.split('\n')[0]).toBe(greeting);
  });

  test('are answered alike for everybody, and the code sets a new password once', async () => {
    const { refresh_token: token } = await signUp();
    const [there, absent] = [await forgot(email), await forgot('nobody@example.com')];
    expect([absent.status, absent.body]).toEqual([there.status, there.body]);
    const mail = await lastMail();
    expect(mail).toMatchObject({ kind: 'password_reset', recipient: email });
    expect((await post('/auth/password/reset', { code: mail.code, password: 'x' })).body.code).toBe(
      'PASSWORD_TOO_SHORT',
    );
    expect((await post('/auth/password/reset/check-code', { code: mail.code })).body).toEqual({ is_code_valid: true });
    expect((await post('/auth/password/reset', { code: mail.code, password: 'renewed horse' })).status).toBe(200);
    const again = await post('/auth/password/reset', { code: mail.code, password: 'robbed horse' });
    expect([again.status, again.body.code]).toEqual([409, 'VERIFICATION_CODE_ALREADY_USED']);
    expect((await signIn('renewed horse')).status).toBe(200);
    expect((await refresh(token)).status).toBe(401);
  });

  test('codes are for their project, their time and their address', async () => {
    const { user_id: id } = await signUp();
    await forgot(email);
    const { code } = await lastMail();
    const other = await provider.provision('other');
    const body = { code, password: 'renewed horse' };
    const reset = async (headers: Record<string, string>) =>
      (await provider.call('POST', '/auth/password/reset', headers, body)).body.code;
    expect(await reset(other.client)).toBe('VERIFICATION_CODE_NOT_FOUND');
    await provider.call('PATCH', `/users/${id}`, project.server, { primary_email: 'moved@example.com' });
    expect(await reset(project.client)).toBe('VERIFICATION_CODE_NOT_FOUND');
    await provider.call('PATCH', `/users/${id}`, project.server, { primary_email: email });
    nowMs += 2 * 3_600_000 + 1;
    expect(await reset(project.client)).toBe('VERIFICATION_CODE_EXPIRED');
    expect((await signIn(password)).status).toBe(200);
  });

  test('do not fill a mailbox', async () => {
    await signUp();
    const statuses = [];
    for (let i = 0; i < 6; i += 1) statuses.push((await forgot(email)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    const absent = [];
    for (let i = 0; i < 6; i += 1) absent.push((await forgot('nobody@example.com')).status);
    expect(absent).toEqual(statuses);
  });
});
