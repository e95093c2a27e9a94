/**
 * GitHub, which is no OpenID provider: the account comes from two calls of its API. The same calls exist in GitHub
 * Enterprise Server, where the API is below the address of the site.
 */
import type { Identity } from '../statements/oauth-visits.ts';
import { ThirdPartyFailure } from './failure.ts';
import { identityOf } from './identity.ts';
import type { IdentityProvider, Return, Visit } from './identity-provider.ts';
import { refusal } from './openid.ts';
import { ask, askObject, type Json, requireObject } from './request.ts';

const publicSite = 'https://github.com';

export class GithubProvider implements IdentityProvider {
  readonly #site: string;
  readonly #api: string;

  constructor(site = publicSite) {
    this.#site = site;
    this.#api = site === publicSite ? 'https://api.github.com' : `${site}/api/v3`;
  }

  async authorizationUrl(visit: Visit): Promise<string> {
    const url = new URL(`${this.#site}/login/oauth/authorize`);
    const parameters = {
      response_type: 'code',
      client_id: visit.clientId,
      redirect_uri: visit.redirectUri,
      scope: 'read:user user:email',
      state: visit.state,
      code_challenge: visit.codeChallenge,
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  async identify(answer: Return): Promise<Identity> {
    const headers = { authorization: `Bearer ${await this.#accessToken(answer)}` };
    const user = await askObject('user of GitHub', `${this.#api}/user`, { headers });
    const { status, body } = await ask('addresses of GitHub', `${this.#api}/user/emails`, { headers });
    if (status !== 200 || !Array.isArray(body)) {
      throw new ThirdPartyFailure('unavailable', `the addresses of GitHub answered ${status}`);
    }
    const address = chooseAddress(body);
    return identityOf(this.#site, {
      // Ids are never given away again; names are.
      accountId: typeof user.id === 'number' ? String(user.id) : undefined,
      email: address?.email,
      isEmailVerified: address?.verified === true,
      displayName: user.name ?? user.login,
      pictureUrl: user.avatar_url,
    });
  }

  async #accessToken(answer: Return): Promise<string> {
    const { status, body } = await ask('token endpoint', `${this.#site}/login/oauth/access_token`, {
      form: {
        client_id: answer.clientId,
        client_secret: answer.clientSecret,
        code: answer.code,
        redirect_uri: answer.redirectUri,
        code_verifier: answer.codeVerifier,
      },
    });
    const reply = requireObject('token endpoint', body);
    // Refusals have status 200 there.
    if (typeof reply.access_token !== 'string') throw refusal(status, reply);
    return reply.access_token;
  }
}

function chooseAddress(all: readonly unknown[]): Json | undefined {
  const addresses = all.filter((one): one is Json => typeof one === 'object' && one !== null);
  return addresses.find((one) => one.primary === true) ?? addresses.find((one) => one.verified === true);
}
