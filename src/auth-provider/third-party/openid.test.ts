/** What an id token must have. The server is a stub, because a real one does not make bad tokens. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type HttpStub, type StubReply, startHttpStub } from '../../../test/helpers/http-stub.ts';
import { systemClock } from '../../lib/clock.ts';
import { createIdentityProviders } from './identity-providers.ts';
import { isFit } from './openid.ts';

type Keys = Awaited<ReturnType<typeof generateKeyPair>>;
let own: Keys;
let foreign: Keys;
let stub: HttpStub | undefined;
beforeAll(async () => {
  own = await generateKeyPair('ES256', { extractable: true });
  foreign = await generateKeyPair('ES256', { extractable: true });
});
afterEach(async () => {
  await stub?.close();
  stub = undefined;
});

interface Server {
  /** In place of, or beside, the standard ones; undefined leaves one out. */
  readonly claims?: { readonly [name: string]: unknown };
  readonly key?: () => Keys;
  readonly metadata?: object;
  readonly userinfo?: object;
  /** In place of what is answered at this path. */
  readonly at?: Readonly<Record<string, StubReply>>;
}

/** An OpenID server that signs what it is given, and who somebody is by its word. */
async function identify(server: Server) {
  const keySet = { keys: [{ ...(await exportJWK(own.publicKey)), kid: 'own', alg: 'ES256' }] };
  const tokens: { id_token?: string } = {};
  stub = await startHttpStub(({ path }) => {
    const { url } = stub as HttpStub;
    const answers: Record<string, unknown> = {
      '/.well-known/openid-configuration': {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        jwks_uri: `${url}/keys`,
        ...(server.userinfo === undefined ? {} : { userinfo_endpoint: `${url}/userinfo` }),
        token_endpoint_auth_methods_supported: ['client_secret_post'],
        ...server.metadata,
      },
      '/keys': keySet,
      '/token': { access_token: 'a', ...tokens },
      '/userinfo': server.userinfo,
    };
    return server.at?.[path] ?? { body: answers[path] };
  });
  tokens.id_token = await sign(stub.url, server);
  const issuers = { corp: stub.url };
  const provider = createIdentityProviders(issuers, systemClock).find('corp', { microsoftTenantId: null });
  const answer = { clientId: 'us', clientSecret: 's', redirectUri: 'http://localhost/back', code: 'c' };
  return provider?.identify({ ...answer, nonce: 'our nonce', codeVerifier: 'v', issuer: undefined });
}

function sign(issuer: string, { claims = {}, key = () => own }: Server): Promise<string> {
  const seconds = Math.floor(Date.now() / 1000);
  const standard = { iss: issuer, aud: 'us', sub: 'ada', iat: seconds, exp: seconds + 300, nonce: 'our nonce' };
  const all = Object.fromEntries(Object.entries({ ...standard, ...claims }).filter(([, value]) => value !== undefined));
  return new SignJWT(all).setProtectedHeader({ alg: 'ES256', kid: 'own' }).sign(key().privateKey);
}

const past = Math.floor(Date.now() / 1000) - 7_200;
const rejected = { name: 'ThirdPartyFailure', problem: 'rejected' };
const unavailable = { name: 'ThirdPartyFailure', problem: 'unavailable' };

describe('an id token', () => {
  test('says who somebody is', async () => {
    const claims = { email: 'Ada@Example.com', email_verified: 'true', name: 'Ada', picture: 'https://a.example/p' };
    expect(await identify({ claims })).toEqual({
      issuer: stub?.url,
      accountId: 'ada',
      email: 'ada@example.com',
      isEmailVerified: true,
      displayName: 'Ada',
      pictureUrl: 'https://a.example/p',
    });
  });

  test.each([
    ['an address that is none', { email: 'ada', email_verified: true }],
    ['a verified address that is missing', { email_verified: true }],
    ['an address of another type', { email: ['ada@example.com'], email_verified: true }],
  ])('has no verified address with %s', async (_what, claims) => {
    expect(await identify({ claims })).toMatchObject({ email: null, isEmailVerified: false });
  });

  test.each([
    ['signed with another key', { key: () => foreign }],
    ['of another issuer', { claims: { iss: 'https://evil.example' } }],
    ['for another client', { claims: { aud: 'them' } }],
    ['handed to another client', { claims: { aud: ['us', 'them'], azp: 'them' } }],
    ['that has expired', { claims: { iat: past - 300, exp: past } }],
    ['without an end', { claims: { exp: undefined } }],
    ['without a nonce', { claims: { nonce: undefined } }],
    ['with another nonce', { claims: { nonce: 'their nonce' } }],
    ['without a subject', { claims: { sub: undefined } }],
    ['with a subject that is too long', { claims: { sub: 'x'.repeat(300) } }],
  ])('%s is refused', async (_what, server: Server) => {
    await expect(identify(server)).rejects.toMatchObject(rejected);
  });

  test('that is signed with the client secret, or not at all, is refused', async () => {
    const body = (token: string) => ({ body: { id_token: token } });
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = part({ aud: 'us', sub: 'ada', nonce: 'our nonce', iat: past, exp: past + 9_000 });
    const unsigned = `${part({ alg: 'none' })}.${claims}.`;
    await expect(identify({ at: { '/token': body(unsigned) } })).rejects.toMatchObject(rejected);
    const secret = new TextEncoder().encode('s'.repeat(32));
    const symmetric = await new SignJWT({ sub: 'ada' }).setProtectedHeader({ alg: 'HS256' }).sign(secret);
    await stub?.close();
    await expect(identify({ at: { '/token': body(symmetric) } })).rejects.toMatchObject(rejected);
  });
});

describe('an OpenID server', () => {
  test('may have the profile elsewhere, but that of the same person', async () => {
    const userinfo = { sub: 'ada', email: 'ada@example.com', email_verified: true };
    expect(await identify({ userinfo })).toMatchObject({ email: 'ada@example.com', isEmailVerified: true });
    await stub?.close();
    await expect(identify({ userinfo: { ...userinfo, sub: 'eve' } })).rejects.toMatchObject(rejected);
  });

  test.each([
    ['claims to be another', { metadata: { issuer: 'https://evil.example' } }],
    ['has a token endpoint without TLS elsewhere', { metadata: { token_endpoint: 'http://10.0.0.1/token' } }],
    ['has its keys at another service of this machine', { metadata: { jwks_uri: 'http://127.0.0.1:9/keys' } }],
    ['answers with an error', { at: { '/token': { status: 500, body: { error: 'server_error' } } } }],
    ['refuses our credentials', { at: { '/token': { status: 401, body: { error: 'invalid_client' } } } }],
    ['answers with no JSON', { at: { '/token': { body: '<html>' } } }],
    ['answers with too much', { at: { '/token': { body: { id_token: 'x'.repeat(600_000) } } } }],
    ['leaves out the id token', { at: { '/token': { body: { access_token: 'a' } } } }],
  ] as const)('that %s cannot be used', async (_what, server: Server) => {
    await expect(identify(server)).rejects.toMatchObject(unavailable);
  });

  test.each([
    ['https://idp.example/token', 'https://idp.example', true],
    ['https://tokens.example/token', 'https://idp.example', true],
    ['http://idp.example/token', 'https://idp.example', false],
    ['https://127.0.0.1:8443/token', 'https://idp.example', false],
    ['https://localhost/token', 'https://idp.example', false],
    ['https://169.254.169.254/token', 'https://idp.example', false],
    ['https://[fd00::1]/token', 'https://idp.example', false],
    ['https://10.0.0.2/token', 'https://10.0.0.1', true],
    ['http://10.0.0.2/token', 'https://10.0.0.1', false],
    ['no URL', 'https://idp.example', false],
  ])('may use %s if it is %s: %s', (url, issuer, fits) => {
    expect(isFit(url, issuer)).toBe(fits);
  });

  test('that has a code refused for good is no trouble of ours', async () => {
    const refusal = { status: 400, body: { error: 'invalid_grant' } };
    await expect(identify({ at: { '/token': refusal } })).rejects.toMatchObject(rejected);
  });
});
