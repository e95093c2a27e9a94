/** The provider as the unmodified SDKs see it, the newest one and the last with the older header names. */
import * as newest from '@stackframe/js';
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import * as older from 'stackframe-js-2.8.102';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  listenAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../test/helpers/auth-provider.ts';
import { eventually } from '../../test/helpers/eventually.ts';

let provider: TestAuthProvider & { readonly url: string };
let project: ProvisionedProject;
beforeAll(async () => {
  // An SDK refreshes a token that has less than twenty seconds left.
  provider = await listenAuthProvider({ accessTokenSeconds: 22 });
  project = await provider.provision('sdk');
});
afterAll(() => provider.close());

const sdks = [
  { version: '2.8.108', sdk: newest },
  // What is used here has the same types in both; the compiler cannot see that.
  { version: '2.8.102', sdk: older as unknown as typeof newest },
] as const;

describe.each(sdks)('@stackframe/js $version', ({ version, sdk }) => {
  const email = `ada-${version}@example.com`;
  const settings = () => ({
    baseUrl: provider.url,
    projectId: project.id,
    publishableClientKey: project.publishableKey,
    tokenStore: 'memory' as const,
  });
  const serverApp = () => new sdk.StackServerApp({ ...settings(), secretServerKey: project.secretKey });
  const clientApp = () => new sdk.StackClientApp(settings());

  test('a server creates, reads, lists, updates and deletes users', async () => {
    const server = serverApp();
    const made = await server.createUser({
      primaryEmail: `made-${version}@example.com`,
      displayName: 'Made',
      serverMetadata: { plan: 'pro' },
    });
    expect(made).toMatchObject({ displayName: 'Made', primaryEmail: `made-${version}@example.com` });
    expect(await server.getUser(made.id)).toMatchObject({ id: made.id, serverMetadata: { plan: 'pro' } });
    const others = [await server.createUser({ displayName: 'B' }), await server.createUser({ displayName: 'C' })];
    const first = await server.listUsers({ limit: 2, query: '', orderBy: 'signedUpAt' });
    expect(first).toHaveLength(2);
    expect(first.nextCursor).not.toBeNull();
    const found = await server.listUsers({ query: `made-${version}` });
    expect(found.map((user) => user.id)).toEqual([made.id]);
    await made.update({ displayName: 'Changed', clientMetadata: { a: 1 } });
    expect(await serverApp().getUser(made.id)).toMatchObject({ displayName: 'Changed', clientMetadata: { a: 1 } });
    await made.delete();
    for (const other of others) await other.delete();
    expect(await serverApp().getUser(made.id)).toBeNull();
  });

  test('a person signs up, reads and changes themselves, refreshes, and signs out', async () => {
    const client = clientApp();
    expect(await client.getUser()).toBeNull();
    const signedUp = await client.signUpWithCredential({
      email,
      password: 'correct horse',
      noRedirect: true,
      noVerificationCallback: true,
    });
    expect(signedUp.status).toBe('ok');
    const me = await client.getUser();
    expect(me).toMatchObject({ primaryEmail: email, hasPassword: true, isAnonymous: false });
    const before = await me?.currentSession.getTokens();
    await me?.update({ displayName: 'Ada' });
    expect(await client.getUser()).toMatchObject({ displayName: 'Ada' });
    const after = await (await client.getUser())?.currentSession.getTokens();
    expect(after?.accessToken).not.toBe(before?.accessToken);
    await client.signOut();
    expect(await client.getUser()).toBeNull();
    // The server has ended the session too: the refresh token is worthless now.
    const form = { grant_type: 'refresh_token', refresh_token: before?.refreshToken ?? '', client_id: project.id };
    const refused = await fetch(`${provider.url}/api/v1/auth/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ ...form, client_secret: project.publishableKey }),
    });
    expect([refused.status, refused.headers.get('x-stack-known-error')]).toEqual([
      401,
      'REFRESH_TOKEN_NOT_FOUND_OR_EXPIRED',
    ]);
  });

  test('a person signs in; the access token verifies against the key set; wrong passwords are known errors', async () => {
    const client = clientApp();
    const wrong = await client.signInWithCredential({ email, password: 'wrong horse', noRedirect: true });
    expect(wrong.status === 'error' && wrong.error.errorCode).toBe('EMAIL_PASSWORD_MISMATCH');
    const taken = await client.signUpWithCredential({
      email,
      password: 'correct horse',
      noRedirect: true,
      noVerificationCallback: true,
    });
    expect(taken.status === 'error' && taken.error.errorCode).toBe('USER_EMAIL_ALREADY_EXISTS');
    const signedIn = await client.signInWithCredential({ email, password: 'correct horse', noRedirect: true });
    expect(signedIn.status).toBe('ok');
    const me = await client.getUser();
    const { accessToken } = (await me?.currentSession.getTokens()) ?? {};
    const keySet = createRemoteJWKSet(new URL(`${provider.url}/api/v1/projects/${project.id}/.well-known/jwks.json`));
    const { payload } = await jwtVerify(accessToken ?? '', keySet, {
      issuer: `${provider.url}/api/v1/projects/${project.id}`,
      audience: project.id,
    });
    expect(payload).toMatchObject({ sub: me?.id, email, role: 'authenticated', project_id: project.id });
    expect(Object.keys(payload).sort()).toEqual(
      [
        'aud',
        'branch_id',
        'email',
        'email_verified',
        'exp',
        'iat',
        'is_anonymous',
        'is_restricted',
        'iss',
        'name',
        'project_id',
        'refresh_token_id',
        'requires_totp_mfa',
        'restricted_reason',
        'role',
        'selected_team_id',
        'signed_up_at',
        'sub',
      ].sort(),
    );
    expect(decodeProtectedHeader(accessToken ?? '')).toMatchObject({ alg: 'ES256' });
  });

  test('a token that runs out is refreshed without anybody noticing', async () => {
    const client = clientApp();
    await client.signInWithCredential({ email, password: 'correct horse', noRedirect: true });
    const first = await (await client.getUser())?.currentSession.getTokens();
    const second = await eventually(
      async () => {
        const tokens = await (await client.getUser())?.currentSession.getTokens();
        if (tokens?.accessToken === first?.accessToken) throw new Error('not refreshed yet');
        return tokens;
      },
      { everyMs: 250 },
    );
    expect(second?.refreshToken).toBe(first?.refreshToken);
    expect(await client.getUser()).toMatchObject({ primaryEmail: email });
  });

  test('sessions, passwords and the address are managed by their user', async () => {
    const client = clientApp();
    await client.signInWithCredential({ email, password: 'correct horse', noRedirect: true });
    const me = await client.getUser({ or: 'throw' });
    const sessions = await me.getActiveSessions();
    expect(sessions.length).toBeGreaterThan(1);
    expect(sessions.filter((session) => session.isCurrentSession)).toHaveLength(1);
    expect(await me.updatePassword({ oldPassword: 'wrong horse', newPassword: 'another horse' })).toMatchObject({
      errorCode: 'PASSWORD_CONFIRMATION_MISMATCH',
    });
    expect(await me.updatePassword({ oldPassword: 'correct horse', newPassword: 'another horse' })).toBeUndefined();
    expect(await me.getActiveSessions()).toHaveLength(1);
    const [channel] = await me.listContactChannels();
    expect(channel).toMatchObject({ value: email, isVerified: false, usedForAuth: true });
    expect(await me.listTeams()).toEqual([]);
    const renewed = await clientApp().signInWithCredential({ email, password: 'another horse', noRedirect: true });
    expect(renewed.status).toBe('ok');
  });

  test('a server makes sessions for its users and knows them by their tokens', async () => {
    const server = serverApp();
    const user = await server.createUser({ displayName: 'Guest' });
    const session = await user.createSession({ expiresInMillis: 60_000 });
    const tokens = await session.getTokens();
    const seen = await server.getUser({
      tokenStore: { accessToken: tokens.accessToken ?? '', refreshToken: tokens.refreshToken ?? '' },
    });
    expect(seen?.id).toBe(user.id);
    expect(await serverApp().getProject()).toMatchObject({ id: project.id, displayName: 'sdk' });
  });
});
