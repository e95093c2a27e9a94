/**
 * The way to an OAuth provider and back. SDKs ask for the address as JSON; browsers that follow a link are redirected.
 * Once the application is known to be one of the project's, it hears of failures itself; before that, the visitor does.
 */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { requireTrustedUrl } from '../core/domains.ts';
import type { Limits } from '../core/limits.ts';
import { requireUnconnected } from '../core/oauth-accounts.ts';
import { withError } from '../core/oauth-answers.ts';
import { beginVisit, endVisit } from '../core/oauth-visits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { verifySession } from '../core/sessions.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { AuthProviderError, schemaError, sendAuthProviderError, statusOf } from '../http/errors.ts';
import { WebUrl } from '../http/schemas.ts';
import { guarded, requireOauthClient } from '../routes/access.ts';
import { selectDomains } from '../statements/domains.ts';
import type { ProjectRow } from '../statements/projects.ts';
import type { IdentityProviders } from '../third-party/identity-providers.ts';
import { html } from './html.ts';
import { sendHtml } from './layout.ts';

const Text = Type.String({ maxLength: 2000 });
const Optional = Type.Optional(Text);
const ResponseMode = Type.Optional(Type.Union([Type.Literal('json'), Type.Literal('redirect')]));
const ProviderParams = Type.Object({ provider: Type.String({ maxLength: 100 }) });
/** Allows unknown parameters, because browsers and links add some. */
const AuthorizeQuery = Type.Object({
  client_id: Text,
  client_secret: Optional,
  redirect_uri: WebUrl,
  state: Type.String({ minLength: 1, maxLength: 2000 }),
  response_type: Type.Optional(Type.Literal('code')),
  code_challenge: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
  code_challenge_method: Type.Literal('S256'),
  type: Type.Optional(Type.Union([Type.Literal('authenticate'), Type.Literal('link')])),
  token: Type.Optional(Type.String({ maxLength: 8192 })),
  after_callback_redirect_url: Type.Optional(WebUrl),
  provider_scope: Optional,
  stack_response_mode: ResponseMode,
  hexclave_response_mode: ResponseMode,
});
const CallbackQuery = Type.Object({ state: Text, code: Optional, error: Optional, iss: Optional });

const open = guarded('open');

export function oauthVisitRoutes(
  app: AuthProviderApp,
  parts: AuthProviderParts,
  limits: Limits,
  providers: IdentityProviders,
): void {
  app.setErrorHandler((error, request, reply) => {
    if (wantsJson(request.query)) return sendAuthProviderError(error, request, reply);
    return sendTrouble(error, request, reply);
  });
  // Addresses here hold codes, which the next page must not see as where its visitor came from.
  app.addHook('onRequest', async (_request, reply) => void reply.header('referrer-policy', 'no-referrer'));

  app.get(
    '/auth/oauth/authorize/:provider',
    { ...open, schema: { ...open.schema, params: ProviderParams, querystring: AuthorizeQuery } },
    async (request, reply) => {
      const { query } = request;
      limits.address('signIn', request.ip);
      const project = await requireOauthClient(parts, query.client_id, query.client_secret);
      const domains = await selectDomains(parts.database.sql, project.id);
      const redirectUri = query.redirect_uri.split('#', 1)[0] ?? '';
      const after = query.after_callback_redirect_url;
      requireTrustedUrl(project, domains, redirectUri);
      if (after !== undefined) requireTrustedUrl(project, domains, after);
      const begin = async () => {
        if (query.provider_scope !== undefined && query.provider_scope !== '') {
          throw schemaError('query.provider_scope must be left out: tokens of OAuth providers are not kept here');
        }
        const providerId = request.params.provider.toLowerCase();
        return beginVisit(parts, providers, project, {
          providerId,
          userId: query.type === 'link' ? await linkingUser(parts, project, query.token, providerId) : null,
          redirectUri,
          afterCallbackRedirectUrl: after ?? null,
          appState: query.state,
          codeChallenge: query.code_challenge,
        });
      };
      if (wantsJson(query)) return { location: await begin() };
      return reply.redirect(await orBack(begin, request, redirectUri, query.state), 303);
    },
  );

  app.get(
    '/auth/oauth/callback/:provider',
    { ...open, schema: { ...open.schema, params: ProviderParams, querystring: CallbackQuery } },
    async (request, reply) => {
      const { state, code, error, iss: issuer } = request.query;
      limits.address('signIn', request.ip);
      const answer = { providerId: request.params.provider, state, code, error, issuer };
      return reply.redirect(await endVisit(parts, providers, answer, (failure) => note(request, failure)), 303);
    },
  );
}

/** Whoever wants an account connected proves who they are with their access token. */
async function linkingUser(
  parts: AuthProviderParts,
  project: ProjectRow,
  token: string | undefined,
  providerId: string,
): Promise<string> {
  if (token === undefined || token === '') throw schemaError('query.token is required to connect an account');
  const { userId } = await verifySession(parts, token, project.id);
  await requireUnconnected(parts.database.sql, project.id, userId, providerId);
  return userId;
}

async function orBack(begin: () => Promise<string>, request: FastifyRequest, url: string, state: string) {
  try {
    return await begin();
  } catch (error) {
    if (!(error instanceof AuthProviderError) || error.code === null) throw error;
    note(request, error);
    return withError(url, error, { state });
  }
}

/** What an operator can do something about; the rest is between the visitor and the application. */
function note(request: FastifyRequest, error: AuthProviderError): void {
  if (error.cause !== undefined) request.log.warn({ err: error.cause }, 'a visit to an OAuth provider failed');
}

function wantsJson(query: unknown): boolean {
  if (typeof query !== 'object' || query === null) return false;
  const { stack_response_mode: older, hexclave_response_mode: newer } = query as Record<string, unknown>;
  return older === 'json' || newer === 'json';
}

function sendTrouble(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = statusOf(thrown) ?? 500;
  if (status >= 500) request.log.error({ err: thrown }, 'a visit to an OAuth provider failed');
  if (thrown instanceof AuthProviderError && thrown.retryAfterSeconds !== undefined) {
    reply.header('retry-after', String(thrown.retryAfterSeconds));
  }
  const text = status < 500 && thrown instanceof Error ? thrown.message : 'Please try again in a moment.';
  const advice = 'Go back to the application and sign in again. If that does not help, its owner has to look into it.';
  return sendHtml(reply, {
    title: 'Signing in did not work',
    status,
    body: html`<h1>Signing in did not work</h1><p class="lead">${text}</p><p>${advice}</p>`,
  });
}
