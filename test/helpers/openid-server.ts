/** A real OpenID server on this machine (`oidc-provider` from npm), and people who have accounts there. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair } from 'jose';
import { Provider } from 'oidc-provider';

export interface OpenIdPerson {
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly name?: string;
  readonly picture?: string;
}

export interface OpenIdServer {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** By the name that they sign in with, which is also their `sub`. */
  readonly people: Map<string, OpenIdPerson>;
  /** The addresses that it may send people back to. */
  allow(redirectUris: readonly string[], options?: OpenIdOptions): void;
  close(): Promise<void>;
}

interface OpenIdOptions {
  /** Puts the profile into the id token too; the standard has it at the userinfo endpoint alone. */
  readonly fullIdToken?: boolean;
  readonly authMethod?: 'client_secret_basic' | 'client_secret_post';
}

const clientId = 'catnap of the tests';
const clientSecret = 'a secret: with + odd % characters';

export async function startOpenIdServer(): Promise<OpenIdServer> {
  let provider: Provider | undefined;
  const server = createServer((request, response) => {
    if (provider === undefined) return void response.writeHead(503).end('{}');
    if (!request.url?.startsWith('/interaction/')) return provider.callback()(request, response);
    answerInteraction(provider, request, response).catch((error) => response.writeHead(500).end(String(error)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const people = new Map<string, OpenIdPerson>();
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig' };
  return {
    url,
    clientId,
    clientSecret,
    people,
    allow: (redirectUris, options = {}) => {
      provider = makeProvider(url, key, redirectUris, people, options);
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function makeProvider(
  url: string,
  key: object,
  redirectUris: readonly string[],
  people: ReadonlyMap<string, OpenIdPerson>,
  { fullIdToken = false, authMethod = 'client_secret_basic' }: OpenIdOptions,
): Provider {
  return new Provider(url, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: redirectUris,
        id_token_signed_response_alg: 'ES256',
        token_endpoint_auth_method: authMethod,
      },
    ],
    clientAuthMethods: [authMethod],
    jwks: { keys: [key] },
    cookies: { keys: ['only for tests'] },
    pkce: { required: () => true },
    conformIdTokenClaims: !fullIdToken,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'picture'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: { AccessToken: 600, AuthorizationCode: 60, IdToken: 600, Interaction: 600, Session: 600, Grant: 600 },
    findAccount: (_context: unknown, sub: string) => {
      const person = people.get(sub);
      return person && { accountId: sub, claims: async () => ({ sub, ...person }) };
    },
  });
}

/** Its sign-in page: a name is enough. An empty one says no. */
async function answerInteraction(provider: Provider, request: IncomingMessage, response: ServerResponse) {
  const { params } = await provider.interactionDetails(request, response);
  if (request.method !== 'POST') {
    const form = '<form method="post"><label>Name <input name="login"></label><button>Continue</button></form>';
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>The other side</title>${form}`);
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const accountId = new URLSearchParams(Buffer.concat(chunks).toString()).get('login') ?? '';
  if (accountId === '') {
    return provider.interactionFinished(request, response, { error: 'access_denied', error_description: 'no' });
  }
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const result = { login: { accountId }, consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result);
}

/** Somebody signs in there, without a browser; returns the address to which the server sends them back. */
export async function visitOpenIdServer(server: OpenIdServer, url: string, name: string): Promise<string> {
  const cookies = new Map<string, string>();
  let next = url;
  for (let hops = 0; next.startsWith(server.url); hops += 1) {
    if (hops > 10) throw new Error(`no way out of ${next}`);
    const isForm = next.includes('/interaction/');
    const reply: Response = await fetch(next, {
      method: isForm ? 'POST' : 'GET',
      headers: { cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join('; ') },
      ...(isForm ? { body: new URLSearchParams({ login: name }) } : {}),
      redirect: 'manual',
    });
    for (const cookie of reply.headers.getSetCookie()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(key, value);
    }
    const location = reply.headers.get('location');
    if (location === null) throw new Error(`the OpenID server answered ${reply.status}: ${await reply.text()}`);
    next = new URL(location, next).href;
  }
  return next;
}
