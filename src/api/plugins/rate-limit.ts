/**
 * Limits per key: requests per minute, and a burst per route; and per address for failed authentication, so that keys
 * cannot be guessed fast. In this process only: with several API processes the limit is per process.
 */
import type { Clock } from '../../lib/clock.ts';
import { CatnapError } from '../../lib/errors.ts';
import { hashToken } from '../../lib/secrets.ts';
import { createTokenBuckets } from '../../lib/token-buckets.ts';
import type { App } from '../kit/app-type.ts';
import type { GuessGuard } from './auth.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Requests a second that one key may send to this route, where it is not the usual number. */
    requestsPerSecond?: number;
  }
}

const routeRequestsPerSecond = 40;
/** Each bucket is about 100 bytes, so this is about a megabyte. */
const bucketsMax = 10_000;
/** A person who mistypes a key never notices; a machine that guesses does. */
const failuresShape = { capacity: 30, perSecond: 0.5 };
const knownTokensMax = 1_000;

interface RateLimitOptions {
  /** Undefined turns every limit off. */
  readonly requestsPerMinute: number | undefined;
  readonly clock: Clock;
}

export function useRateLimit(app: App, options: RateLimitOptions): void {
  const { requestsPerMinute, clock } = options;
  if (requestsPerMinute === undefined) return;
  const perKey = createTokenBuckets({ capacity: requestsPerMinute, perSecond: requestsPerMinute / 60 }, bucketsMax);
  const perRoute = createTokenBuckets(
    { capacity: routeRequestsPerSecond, perSecond: routeRequestsPerSecond },
    bucketsMax,
  );
  app.addHook('onRequest', async (request) => {
    if (request.caller === null) return;
    const nowMs = clock.now().getTime();
    const keyId = String(request.caller.keyId);
    const own = request.routeOptions.config.requestsPerSecond;
    const shape = own === undefined ? undefined : { capacity: own, perSecond: own };
    const route = `${keyId} ${request.method} ${request.routeOptions.url}`;
    const wait = Math.max(perKey.take(keyId, nowMs), perRoute.take(route, nowMs, shape));
    if (wait > 0) throw tooMany(wait);
  });
}

export function createGuessGuard(options: RateLimitOptions): GuessGuard {
  const { requestsPerMinute, clock } = options;
  if (requestsPerMinute === undefined) return { check: () => {}, failed: () => {}, succeeded: () => {} };
  const failures = createTokenBuckets(failuresShape, bucketsMax);
  // Behind a reverse proxy all clients have one address: keys that work must not suffer for those that do not.
  const known = new Set<string>();
  const nameOf = (token: string) => hashToken(token).toString('base64');
  return {
    check(remoteAddress, token) {
      const wait = failures.peek(remoteAddress, clock.now().getTime());
      if (wait > 0 && !known.has(nameOf(token))) throw tooMany(wait);
    },
    failed(remoteAddress) {
      failures.take(remoteAddress, clock.now().getTime());
    },
    succeeded(token) {
      const name = nameOf(token);
      known.delete(name);
      known.add(name);
      const oldest = known.size > knownTokensMax ? known.values().next().value : undefined;
      if (oldest !== undefined) known.delete(oldest);
    },
  };
}

function tooMany(retryAfterSeconds: number): CatnapError {
  return new CatnapError('rate_limited', 'too many requests', { retryAfterSeconds });
}
