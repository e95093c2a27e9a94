/** An application whose people sign in with an OAuth provider, over HTTP and without a browser. */
import { createHash, randomBytes } from 'node:crypto';
import type { AuthProviderParts } from '../../src/auth-provider/core/parts.ts';
import { makeAuthProvider, type ProvisionedProject, type TestAuthProvider } from './auth-provider.ts';
import { type OpenIdServer, visitOpenIdServer } from './openid-server.ts';

export const redirectUri = 'http://localhost:3000/handler/oauth-callback';
const password = 'correct horse';

type Parameters = Readonly<Record<string, string>>;

export class OauthApp {
  readonly openId: OpenIdServer;
  readonly provider: TestAuthProvider;
  project: ProvisionedProject;

  private constructor(openId: OpenIdServer, provider: TestAuthProvider, project: ProvisionedProject) {
    this.openId = openId;
    this.provider = provider;
    this.project = project;
  }

  /** With the OpenID server as `google` and as `corp`, and one that is not there as `down`. */
  static async create(openId: OpenIdServer, overrides: Partial<AuthProviderParts> = {}): Promise<OauthApp> {
    const oauthIssuers = { google: openId.url, corp: openId.url, down: 'http://127.0.0.1:9' };
    const provider = await makeAuthProvider({ limitsAddresses: false, oauthIssuers, ...overrides });
    const app = new OauthApp(openId, provider, await provider.provision());
    openId.allow(['google', 'corp'].map((id) => app.callback(id)));
    return app;
  }

  /** A new project, so that it has no users; with the providers. */
  async restart(ids: readonly string[] = ['google', 'corp', 'down']): Promise<void> {
    this.project = await this.provider.provision();
    for (const id of ids) await this.addProvider(id);
  }

  callback(id: string): string {
    return `${this.provider.parts.baseUrl}/api/v1/auth/oauth/callback/${id}`;
  }

  addProvider(id: string) {
    const { clientId, clientSecret } = this.openId;
    const body = { id, client_id: clientId, client_secret: clientSecret };
    return this.provider.call('POST', '/integrations/neon/oauth-providers', this.project.admin, body);
  }

  configure(config: object) {
    return this.provider.call('PATCH', '/integrations/neon/projects/current', this.project.admin, { config });
  }

  /** The first request, as the SDKs make it. */
  authorization(id = 'google', more: Parameters = {}) {
    const codeVerifier = randomBytes(32).toString('base64url');
    const query = {
      client_id: this.project.id,
      client_secret: this.project.publishableKey,
      redirect_uri: redirectUri,
      scope: 'legacy',
      state: 'state of the app',
      grant_type: 'authorization_code',
      code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
      code_challenge_method: 'S256',
      response_type: 'code',
      type: 'authenticate',
      error_redirect_url: 'http://localhost:3000/handler/error',
      stack_response_mode: 'json',
      ...more,
    };
    return { codeVerifier, path: `/auth/oauth/authorize/${id}?${new URLSearchParams(query)}` };
  }

  authorize(id = 'google', more: Parameters = {}) {
    return this.provider.call('GET', this.authorization(id, more).path);
  }

  /** Where the other side sends a person back to; `changed` replaces parameters on the way there. */
  async visit(name: string, id = 'google', more: Parameters = {}, changed: Parameters = {}) {
    const { codeVerifier, path } = this.authorization(id, more);
    const url = new URL((await this.provider.call('GET', path)).body.location);
    for (const [key, value] of Object.entries(changed)) url.searchParams.set(key, value);
    return { codeVerifier, returned: await visitOpenIdServer(this.openId, url.href, name) };
  }

  /** Opens the address here, and returns where the application is sent. */
  async comeBack(returned: string, changed: Parameters = {}) {
    const { pathname, searchParams } = new URL(returned);
    for (const [key, value] of Object.entries(changed)) searchParams.set(key, value);
    const reply = await this.provider.call('GET', `${pathname}?${searchParams}`);
    const location = String(reply.headers.location ?? '');
    return { status: reply.status, body: reply.body, location, query: new URLSearchParams(location.split('?')[1]) };
  }

  async errorOf(returned: string, changed: Parameters = {}): Promise<string | null> {
    return (await this.comeBack(returned, changed)).query.get('errorCode');
  }

  async redeem(code: string | null, codeVerifier: string, more: Parameters = {}) {
    const form = { grant_type: 'authorization_code', code: code ?? '', code_verifier: codeVerifier };
    const client = { client_id: this.project.id, client_secret: this.project.publishableKey };
    const reply = await this.provider.app.inject({
      method: 'POST',
      url: '/stack/api/v1/auth/oauth/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ ...form, ...client, redirect_uri: redirectUri, ...more }).toString(),
    });
    return { status: reply.statusCode, body: reply.json() };
  }

  async signIn(name: string, id = 'google') {
    const { codeVerifier, returned } = await this.visit(name, id);
    const { location, query } = await this.comeBack(returned);
    const reply = await this.redeem(query.get('code'), codeVerifier);
    if (reply.status !== 200) throw new Error(`${name} did not get in: ${location} ${JSON.stringify(reply.body)}`);
    return reply.body;
  }

  async signUp(email: string) {
    return (await this.provider.call('POST', '/auth/password/sign-up', this.project.client, { email, password })).body;
  }

  verifyMail(id: string) {
    return this.provider.call('PATCH', `/users/${id}`, this.project.server, { primary_email_verified: true });
  }

  own(accessToken: string): Record<string, string> {
    return { ...this.project.client, 'x-stack-access-token': accessToken };
  }

  async me(accessToken: string) {
    return (await this.provider.call('GET', '/users/me', this.own(accessToken))).body;
  }

  async users() {
    return (await this.provider.call('GET', '/users', this.project.server)).body.items;
  }
}
