/**
 * The embedded auth provider as a plugin of the HTTP application: everything under `/stack`. It shares only the port
 * with the management API: it has its own callers, errors and bodies.
 */

import { createLimits, type Limits } from './core/limits.ts';
import { type AuthProviderParts, authProviderPrefix } from './core/parts.ts';
import type { AuthProviderApp } from './http/app-type.ts';
import { useBodies } from './http/bodies.ts';
import { plain, sendAuthProviderError } from './http/errors.ts';
import { corsHeaders, preflightHeaders } from './http/headers.ts';
import { nothingHere, sendFailure } from './pages/failures.ts';
import { oauthVisitRoutes } from './pages/oauth-visit-routes.ts';
import { pageRoutes } from './pages/plugin.ts';
import { guarded, useAccess } from './routes/access.ts';
import { codeRoutes } from './routes/codes.ts';
import { connectedAccountRoutes } from './routes/connected-accounts.ts';
import { contactChannelRoutes } from './routes/contact-channels.ts';
import { domainRoutes } from './routes/domains.ts';
import { keySetRoutes } from './routes/key-sets.ts';
import { oauthProviderRoutes } from './routes/oauth-providers.ts';
import { passwordRoutes } from './routes/passwords.ts';
import { projectRoutes } from './routes/projects.ts';
import { sessionRoutes } from './routes/sessions.ts';
import { transferRoutes } from './routes/transfer.ts';
import { userRoutes } from './routes/users.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import { createIdentityProviders, type IdentityProviders } from './third-party/identity-providers.ts';

/** The newest version is also served under its alias. */
const versions = ['/api/v1', '/api/latest'];

export async function authProviderPlugin(app: AuthProviderApp, parts: AuthProviderParts): Promise<void> {
  app.setErrorHandler((error, request, reply) => sendAuthProviderError(error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const isForPeople =
      !request.url.startsWith(`${authProviderPrefix}/api/`) && request.headers.accept?.includes('text/html');
    if (isForPeople) return sendFailure(nothingHere(), request, reply);
    // A page of another origin may read this answer, as it may read every other one.
    return sendAuthProviderError(plain(404, 'This provider has no such route.'), request, reply.headers(corsHeaders));
  });
  useBodies(app);
  const limits = createLimits(parts);
  const providers = createIdentityProviders(parts.oauthIssuers, parts.clock);
  useAccess(app, parts, limits);
  app.get('/health', guarded('open'), async () => ({ status: 'ok' }));
  await app.register(async (pages: AuthProviderApp) => pageRoutes(pages, parts, limits));
  for (const prefix of versions) {
    await app.register(async (api: AuthProviderApp) => apiRoutes(api, parts, limits, providers), { prefix });
  }
}

async function apiRoutes(
  app: AuthProviderApp,
  parts: AuthProviderParts,
  limits: Limits,
  providers: IdentityProviders,
): Promise<void> {
  useApiHeaders(app);
  projectRoutes(app, parts);
  keySetRoutes(app, parts);
  domainRoutes(app, parts);
  oauthProviderRoutes(app, parts);
  webhookRoutes(app, parts);
  transferRoutes(app, parts);
  userRoutes(app, parts);
  passwordRoutes(app, parts, limits);
  codeRoutes(app, parts, limits);
  sessionRoutes(app, parts, limits);
  contactChannelRoutes(app, parts, limits);
  connectedAccountRoutes(app, parts);
  await app.register(async (visits: AuthProviderApp) => oauthVisitRoutes(visits, parts, limits, providers));
}

function useApiHeaders(app: AuthProviderApp): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...corsHeaders, 'cross-origin-resource-policy': 'cross-origin' });
    for (const family of ['stack', 'hexclave']) reply.header(`x-${family}-request-id`, request.id);
  });
  app.options('/*', guarded('open'), async (_request, reply) => reply.headers(preflightHeaders).status(200).send());
}
