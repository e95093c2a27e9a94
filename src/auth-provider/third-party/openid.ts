/**
 * OpenID Connect: the authorization code flow with PKCE, towards an issuer that publishes its endpoints. What comes
 * back counts only if its signature, issuer, audience, nonce and times verify.
 */
import { timingSafeEqual } from 'node:crypto';
import { createRemoteJWKSet, customFetch, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { Clock } from '../../lib/clock.ts';
import { isWebLoopback } from '../../lib/oauth-issuers.ts';
import { hostOf, isInternalHost } from '../../lib/outbound.ts';
import { hashToken } from '../../lib/secrets.ts';
import type { Identity } from '../statements/oauth-visits.ts';
import { ThirdPartyFailure } from './failure.ts';
import { identityOf } from './identity.ts';
import type { IdentityProvider, Return, Visit } from './identity-provider.ts';
import { ask, askObject, type Json, requireObject } from './request.ts';

export interface OpenIdSettings {
  /** Without `/.well-known/openid-configuration`. */
  readonly metadataUrl: string;
  /** Whether an issuer that the metadata name may be used. */
  isIssuer(issuer: string): boolean;
  /** The issuer that a token must name, where the metadata have only a pattern. */
  issuerOf?(issuer: string, claims: JWTPayload): string;
  isEmailVerified(claims: Json): boolean;
}

interface Metadata {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly userinfoEndpoint: string | undefined;
  readonly takesBasic: boolean;
  readonly keys: JWTVerifyGetKey;
}

const scopes = 'openid email profile';
/** Asymmetric only: with the others, whoever knows the client secret could make tokens. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const clockToleranceSeconds = 60;
const metadataMs = 3_600_000;
/** Visitors must not make Catnap ask an issuer that is down again and again. */
const failureMs = 5_000;

export class OpenIdProvider implements IdentityProvider {
  readonly #settings: OpenIdSettings;
  readonly #clock: Clock;
  #metadata: { readonly found: Promise<Metadata>; readonly untilMs: number } | undefined;

  constructor(settings: OpenIdSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  async authorizationUrl(visit: Visit): Promise<string> {
    const { authorizationEndpoint } = await this.#discover();
    const url = new URL(authorizationEndpoint);
    const parameters = {
      response_type: 'code',
      client_id: visit.clientId,
      redirect_uri: visit.redirectUri,
      scope: scopes,
      state: visit.state,
      nonce: visit.nonce,
      code_challenge: visit.codeChallenge,
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  async identify(answer: Return): Promise<Identity> {
    const metadata = await this.#discover();
    // An answer that another issuer has sent here.
    if (answer.issuer !== undefined && answer.issuer !== metadata.issuer) {
      throw new ThirdPartyFailure('rejected', 'the answer names another issuer');
    }
    const tokens = await exchangeCode(metadata, answer);
    const claims = await this.#verify(metadata, tokens.idToken, answer);
    const more = claims.email === undefined ? await userinfo(metadata, tokens.accessToken, claims) : {};
    const all: Json = { ...more, ...claims };
    return identityOf(String(claims.iss), {
      accountId: all.sub,
      email: all.email,
      isEmailVerified: this.#settings.isEmailVerified(all),
      displayName: all.name ?? all.preferred_username,
      pictureUrl: all.picture,
    });
  }

  #discover(): Promise<Metadata> {
    const nowMs = this.#clock.now().getTime();
    if (this.#metadata !== undefined && nowMs < this.#metadata.untilMs) return this.#metadata.found;
    const found = readMetadata(this.#settings);
    const entry = { found, untilMs: nowMs + metadataMs };
    this.#metadata = entry;
    found.catch(() => {
      if (this.#metadata === entry) this.#metadata = { found, untilMs: nowMs + failureMs };
    });
    return found;
  }

  async #verify(metadata: Metadata, token: string, { clientId, nonce }: Return): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, metadata.keys, {
        algorithms,
        audience: clientId,
        currentDate: this.#clock.now(),
        clockTolerance: clockToleranceSeconds,
        requiredClaims: ['iss', 'sub', 'exp', 'iat', 'nonce'],
      });
      const issuer = this.#settings.issuerOf?.(metadata.issuer, payload) ?? metadata.issuer;
      if (payload.iss !== issuer) throw new Error('the id token is of another issuer');
      if (payload.azp !== undefined && payload.azp !== clientId) throw new Error('the id token is for another client');
      if (!timingSafeEqual(hashToken(String(payload.nonce)), hashToken(nonce))) throw new Error('the nonce is wrong');
      return payload;
    } catch (error) {
      if (error instanceof ThirdPartyFailure) throw error;
      throw new ThirdPartyFailure('rejected', 'the id token does not verify', error);
    }
  }
}

async function readMetadata(settings: OpenIdSettings): Promise<Metadata> {
  const found = await askObject('OpenID configuration', `${settings.metadataUrl}/.well-known/openid-configuration`);
  const endpoint = (name: string) => {
    const value = found[name];
    if (typeof value === 'string' && isFit(value, settings.metadataUrl)) return value;
    throw new ThirdPartyFailure('unavailable', `the OpenID configuration has no usable ${name}`);
  };
  if (typeof found.issuer !== 'string' || !settings.isIssuer(found.issuer)) {
    throw new ThirdPartyFailure('unavailable', 'the OpenID configuration is of another issuer');
  }
  const methods = found.token_endpoint_auth_methods_supported;
  return {
    issuer: found.issuer,
    authorizationEndpoint: endpoint('authorization_endpoint'),
    tokenEndpoint: endpoint('token_endpoint'),
    userinfoEndpoint: found.userinfo_endpoint === undefined ? undefined : endpoint('userinfo_endpoint'),
    takesBasic: !Array.isArray(methods) || methods.includes('client_secret_basic'),
    keys: createRemoteJWKSet(new URL(endpoint('jwks_uri')), { [customFetch]: fetchKeys }),
  };
}

/**
 * An issuer on this machine may name its own plain addresses. One elsewhere must not lead to services of this machine
 * or of the private network.
 */
export function isFit(url: string, metadataUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const [asked, issuer] = [new URL(url), new URL(metadataUrl)];
  if (isWebLoopback(metadataUrl) && asked.origin === issuer.origin) return true;
  const isHome = asked.hostname === issuer.hostname || isInternalHost(hostOf(issuer));
  return asked.protocol === 'https:' && (isHome || !isInternalHost(hostOf(asked)));
}

async function fetchKeys(url: string): Promise<Response> {
  const { status, body } = await ask('key set', url);
  return Response.json(body, { status });
}

async function exchangeCode(metadata: Metadata, answer: Return): Promise<{ idToken: string; accessToken: unknown }> {
  const { clientId, clientSecret } = answer;
  const { status, body } = await ask('token endpoint', metadata.tokenEndpoint, {
    headers: metadata.takesBasic ? { authorization: basic(clientId, clientSecret) } : {},
    form: {
      grant_type: 'authorization_code',
      code: answer.code,
      redirect_uri: answer.redirectUri,
      code_verifier: answer.codeVerifier,
      ...(metadata.takesBasic ? {} : { client_id: clientId, client_secret: clientSecret }),
    },
  });
  const reply = requireObject('token endpoint', body);
  if (status !== 200) throw refusal(status, reply);
  if (typeof reply.id_token === 'string') return { idToken: reply.id_token, accessToken: reply.access_token };
  throw new ThirdPartyFailure('unavailable', 'the token endpoint returned no id token');
}

/** A code that is wrong or too old is the visitor's; everything else has to be put right by somebody else. */
export function refusal(status: number, { error }: Json): ThirdPartyFailure {
  const name = typeof error === 'string' ? error.slice(0, 100) : 'no reason';
  const isCode = error === 'invalid_grant' || error === 'bad_verification_code';
  return new ThirdPartyFailure(isCode ? 'rejected' : 'unavailable', `the token endpoint answered ${status}: ${name}`);
}

/** The parts are form-encoded first, as the standard of OAuth wants it. */
function basic(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams({ a: text }).toString().slice(2);
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')}`;
}

/** Claims that the id token leaves out; those of anybody else do not count. */
async function userinfo({ userinfoEndpoint }: Metadata, accessToken: unknown, { sub }: JWTPayload): Promise<Json> {
  if (userinfoEndpoint === undefined || typeof accessToken !== 'string') return {};
  const headers = { authorization: `Bearer ${accessToken}` };
  const claims = await askObject('userinfo endpoint', userinfoEndpoint, { headers });
  if (claims.sub !== sub) throw new ThirdPartyFailure('rejected', 'the userinfo endpoint describes somebody else');
  return claims;
}
