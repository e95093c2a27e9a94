/** For monitoring: whether the process is alive, whether it is ready, and its metrics. */
import type { FastifyRequest } from 'fastify';
import { requireOperator } from '../../core/account.ts';
import { readScope } from '../../core/context.ts';
import { requireScope } from '../../core/key-scope.ts';
import { getSystemStatus } from '../../core/status.ts';
import { delay } from '../../lib/clock.ts';
import type { Config } from '../../lib/config.ts';
import { CatnapError } from '../../lib/errors.ts';
import { isLoopback } from '../../lib/ip.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { type Access, authenticateRequest } from '../plugins/auth.ts';
import { readProxyMetrics } from '../plugins/proxy-metrics.ts';

/** Less than what probes usually wait. */
const readyTimeoutMs = 2_000;

const open = { config: { isPublic: true }, schema: { hide: true } };

export function healthRoutes(app: App, parts: ApiParts, access: Access): void {
  app.get('/healthz', open, async () => ({ status: 'ok' }));

  app.get('/readyz', open, async () => {
    if (parts.draining?.aborted) throw new CatnapError('unavailable', 'this process is stopping');
    const answer = getSystemStatus(readScope(parts.core)).then(
      () => true,
      () => false,
    );
    const patience = new AbortController();
    const isReady = await Promise.race([answer, delay(readyTimeoutMs, patience.signal).then(() => false)]);
    patience.abort();
    if (!isReady) throw new CatnapError('unavailable', 'the system database does not answer', { retryAfterSeconds: 1 });
    return { status: 'ok' };
  });

  app.get('/metrics', open, async (request, reply) => {
    if (!isLocalVisitor(request, parts.config)) {
      const caller = await authenticateRequest(request, access);
      if (!caller) throw new CatnapError('unauthenticated', 'supplied credentials do not pass authentication');
      requireScope(caller, 'read');
      // The numbers name every project's computes.
      await requireOperator(readScope(parts.core), caller);
    }
    const [own, proxies] = await Promise.all([parts.metrics.metrics(), readProxyMetrics(parts.proxySockets)]);
    return reply.type(parts.metrics.contentType).send(`${own}\n${proxies}`);
  });
}

/**
 * Whether the client is on this machine, and means this machine. A reverse proxy here acts for others, and says so in a
 * header. A page of another site could point its own name at this machine and have the visitor's browser read the
 * reply; the Host header then has that name.
 */
export function isLocalVisitor(request: FastifyRequest, { publicUrl }: Pick<Config, 'publicUrl'>): boolean {
  const { headers, hostname } = request;
  const isForwarded = headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined;
  const isOwnName = ['localhost', '127.0.0.1', '[::1]', new URL(publicUrl).hostname].includes(hostname);
  return !isForwarded && isOwnName && isLoopback(request.ip.replace(/^::ffff:/, ''));
}
