/**
 * Where an auth provider elsewhere reports its users. The route is public, so only the signature counts: a wrong one
 * and an integration that does not exist get the same answer.
 */
import type { FastifyRequest } from 'fastify';
import { readScope } from '../../core/context.ts';
import { takeWebhook } from '../../core/users-sync-webhook.ts';
import type { Clock } from '../../lib/clock.ts';
import { CatnapError, notFound } from '../../lib/errors.ts';
import { createTokenBuckets } from '../../lib/token-buckets.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';

/** For requests that turn out not to be genuine; genuine ones get their token back. */
const strangersShape = { capacity: 60, perSecond: 5 };
const addressesMax = 10_000;

export function usersSyncWebhookRoutes(app: App, parts: ApiParts): void {
  const scope = readScope(parts.core);
  const limit = strangersLimit(parts.config.rateLimitPerMinute === undefined ? null : parts.clock);
  app.removeAllContentTypeParsers();
  // The signature is over the bytes, so nothing may parse them first.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post(
    '/auth/webhooks/:id',
    { config: { isPublic: true }, schema: { hide: true }, onRequest: async (request) => limit.take(request.ip) },
    async (request, reply) => {
      const { id } = request.params as { id: string };
      const isGenuine = await takeWebhook(scope, id, {
        id: header(request, 'id'),
        timestamp: header(request, 'timestamp'),
        signatures: header(request, 'signature'),
        body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
      });
      if (!isGenuine) throw notFound('webhook');
      limit.give(request.ip);
      return reply.status(204).send();
    },
  );
}

/** Both names are in use for the same thing. */
function header({ headers }: FastifyRequest, name: string): string {
  return String(headers[`svix-${name}`] ?? headers[`webhook-${name}`] ?? '');
}

function strangersLimit(clock: Clock | null) {
  const buckets = createTokenBuckets(strangersShape, addressesMax);
  return {
    take: (address: string) => {
      const wait = clock === null ? 0 : buckets.take(address, clock.now().getTime());
      if (wait > 0) throw new CatnapError('rate_limited', 'too many requests', { retryAfterSeconds: wait });
    },
    give: (address: string) => buckets.give(address),
  };
}
