/**
 * Builds the HTTP application; never listens. Everything the process needs from disk is loaded when this returns and
 * `ready()` has resolved: the process that serves it gives up its privileges afterwards.
 */
import { type FastifyBaseLogger, fastify, LogController } from 'fastify';
import { authProviderPrefix } from '../auth-provider/core/parts.ts';
import { authProviderPlugin } from '../auth-provider/plugin.ts';
import { authenticate } from '../core/api-key.ts';
import { readScope } from '../core/context.ts';
import type { App } from './kit/app-type.ts';
import type { ApiParts } from './kit/parts.ts';
import { createProxies } from './kit/proxies.ts';
import { type Access, type Authenticate, useAuth } from './plugins/auth.ts';
import { useBackupMetrics } from './plugins/backup-metrics.ts';
import { findSignedIn } from './plugins/console-cookie.ts';
import { answerClientError, bodyLimitBytes, sendError, useErrors } from './plugins/errors.ts';
import { useHistoryMetrics } from './plugins/history-metrics.ts';
import { useJsonBody } from './plugins/json-body.ts';
import { useKeyScopes } from './plugins/key-scope.ts';
import { useLazySchemas } from './plugins/lazy-schemas.ts';
import { useMetrics } from './plugins/metrics.ts';
import { useOpenApi } from './plugins/openapi.ts';
import { createGuessGuard, useRateLimit } from './plugins/rate-limit.ts';
import { requestIdOf, useRequestId } from './plugins/request-id.ts';
import { useRequestLog } from './plugins/request-log.ts';
import { useRouteTable } from './plugins/route-table.ts';
import { useSecurityHeaders } from './plugins/security-headers.ts';
import { useUsersSyncMetrics } from './plugins/users-sync-metrics.ts';
import { useValidation, validationOptions } from './plugins/validation.ts';
import { agentRoutes } from './routes/agents.ts';
import { apiRoutes } from './routes/api-routes.ts';
import { consolePages, sendConsole } from './routes/console-pages.ts';
import { consoleSessionRoutes } from './routes/console-session.ts';
import { docsRoutes } from './routes/docs.ts';
import { eventRoutes } from './routes/events.ts';
import { healthRoutes } from './routes/health.ts';
import { sqlRoutes } from './routes/sql.ts';
import { statusRoutes } from './routes/status.ts';
import { usersSyncWebhookRoutes } from './routes/users-sync-webhooks.ts';
import { waitingLoginRoutes } from './routes/waiting-logins.ts';
import { webSocketRoutes } from './routes/websocket.ts';
import { sharedSchemas } from './schemas/shared-schemas.ts';

export const apiPrefix = '/api/v2';

const requestMs = 30_000;
const headersMs = 15_000;
const requestCheckMs = 5_000;

/** `prepare` runs before anything else is registered; tests use it to watch every reply. */
export async function buildApp(parts: ApiParts, prepare: (app: App) => void = () => {}): Promise<App> {
  const { config, clock } = parts;
  const app = newInstance(parts);
  prepare(app);
  useRouteTable(app);
  useErrors(app, (reply) => sendConsole(reply, parts.consoleFiles));
  useRequestId(app);
  useSecurityHeaders(app, { isHttps: config.publicUrl.startsWith('https:') });
  useRequestLog(app);
  useMetrics(app, parts.metrics);
  useUsersSyncMetrics(parts.metrics, readScope(parts.core));
  useHistoryMetrics(parts.metrics, readScope(parts.core));
  useBackupMetrics(parts.metrics, readScope(parts.core));
  useJsonBody(app);
  useValidation(app);
  for (const schema of sharedSchemas) app.addSchema(schema);
  useLazySchemas(app, validationOptions);
  await useOpenApi(app, { version: parts.version, url: `${config.publicUrl}${apiPrefix}` });

  const limits = { requestsPerMinute: config.rateLimitPerMinute, clock };
  const access: Access = {
    authenticate: authenticator(parts),
    guard: createGuessGuard(limits),
    findSignedIn: findSignedIn(parts),
  };
  healthRoutes(app, parts, access);
  statusRoutes(app, parts, access);
  consolePages(app, parts.consoleFiles);
  consoleSessionRoutes(app, parts, access);
  waitingLoginRoutes(app, parts, access);
  const proxies = createProxies(parts.proxySockets);
  await app.register(async (sql: App) => sqlRoutes(sql, proxies));
  webSocketRoutes(app, proxies, { drainMs: config.drainSeconds * 1_000, draining: parts.draining });
  await app.register(async (hooks: App) => usersSyncWebhookRoutes(hooks, parts));
  await app.register(async (agents: App) => {
    agentRoutes(agents, parts, access);
    useRateLimit(agents, limits);
  });
  await app.register(async (api: App) => docsRoutes(api), { prefix: apiPrefix });
  await app.register(
    async (api: App) => {
      useAuth(api, access);
      useRateLimit(api, limits);
      useKeyScopes(api, parts);
      apiRoutes(api, parts);
      eventRoutes(api, parts, access);
    },
    { prefix: apiPrefix },
  );
  await app.register(async (provider: App) => authProviderPlugin(provider, parts.authProvider), {
    prefix: authProviderPrefix,
  });
  return app;
}

function newInstance(parts: ApiParts): App {
  const logger: FastifyBaseLogger = parts.log;
  const app: App = fastify({
    ...validationOptions,
    loggerInstance: logger,
    requestIdHeader: false,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: requestIdOf,
    bodyLimit: bodyLimitBytes,
    // Every route counts as a plugin and would get a timer of its own; none of them waits for anything.
    pluginTimeout: 0,
    // A whole request must arrive in this time; a slow sender cannot hold a connection for longer.
    requestTimeout: requestMs,
    // Node takes the larger of the two for the whole request, and looks every 30 s unless told otherwise.
    http: { headersTimeout: headersMs, connectionsCheckingInterval: requestCheckMs },
    keepAliveTimeout: 72_000,
    // While closing, requests in flight are finished; the listener is already gone for new ones.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
    clientErrorHandler: answerClientError,
  });
  app.decorateRequest('caller', null);
  return app;
}

function authenticator(parts: ApiParts): Authenticate {
  const scope = readScope(parts.core);
  return async (token, remoteAddress) => {
    const caller = await authenticate(scope, token);
    if (caller !== undefined) parts.keyUses.record(caller.keyId, remoteAddress);
    return caller;
  };
}
