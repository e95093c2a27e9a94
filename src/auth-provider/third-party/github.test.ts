/** GitHub, played by a stand-in at the addresses of GitHub Enterprise Server; the real one was not tried. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type HttpStub, startHttpStub } from '../../../test/helpers/http-stub.ts';
import { GithubProvider } from './github.ts';

let stub: HttpStub;
let answers: Record<string, unknown>;

beforeAll(async () => {
  stub = await startHttpStub(({ path }) => {
    const body = answers[path];
    return body === undefined ? undefined : { body };
  });
});
beforeEach(() => {
  answers = {
    '/login/oauth/access_token': { access_token: 'gho_1', token_type: 'bearer' },
    '/api/v3/user': { id: 7, login: 'ada', name: 'Ada', avatar_url: 'https://avatars.example/7' },
    '/api/v3/user/emails': [
      { email: 'old@example.com', primary: false, verified: true },
      { email: 'ada@example.com', primary: true, verified: true },
    ],
  };
});
afterAll(() => stub.close());

const answer = {
  clientId: 'us',
  clientSecret: 'our secret',
  redirectUri: 'http://localhost/back',
  code: 'a code',
  nonce: '',
  codeVerifier: 'a verifier',
  issuer: undefined,
};
const identify = () => new GithubProvider(stub.url).identify(answer);

describe('GitHub', () => {
  test('is asked for a token, the user and the addresses', async () => {
    expect(await identify()).toEqual({
      issuer: stub.url,
      accountId: '7',
      email: 'ada@example.com',
      isEmailVerified: true,
      displayName: 'Ada',
      pictureUrl: 'https://avatars.example/7',
    });
    expect(stub.requests[0]?.body).toEqual({
      client_id: 'us',
      client_secret: 'our secret',
      code: 'a code',
      redirect_uri: 'http://localhost/back',
      code_verifier: 'a verifier',
    });
    expect(stub.requests.slice(1).map(({ authorization }) => authorization)).toEqual(['Bearer gho_1', 'Bearer gho_1']);
  });

  test('has an address that is not verified', async () => {
    answers['/api/v3/user/emails'] = [{ email: 'ada@example.com', primary: true, verified: false }];
    expect(await identify()).toMatchObject({ email: 'ada@example.com', isEmailVerified: false });
  });

  test.each([
    ['refuses the code', { '/login/oauth/access_token': { error: 'bad_verification_code' } }, 'rejected'],
    [
      'refuses our credentials',
      { '/login/oauth/access_token': { error: 'incorrect_client_credentials' } },
      'unavailable',
    ],
    ['keeps the addresses to itself', { '/api/v3/user/emails': undefined }, 'unavailable'],
    ['has a user without an id', { '/api/v3/user': { login: 'ada' } }, 'rejected'],
  ])('that %s lets nobody in', async (_what, changed, problem) => {
    answers = { ...answers, ...changed };
    await expect(identify()).rejects.toMatchObject({ problem });
  });

  test('is at its own address unless the operator names another', async () => {
    const visit = { clientId: 'us', redirectUri: 'http://localhost/back', state: 's', nonce: 'n', codeChallenge: 'c' };
    const url = new URL(await new GithubProvider().authorizationUrl(visit));
    expect(url.origin + url.pathname).toBe('https://github.com/login/oauth/authorize');
    expect(Object.fromEntries(url.searchParams)).toMatchObject({ state: 's', code_challenge_method: 'S256' });
  });
});
