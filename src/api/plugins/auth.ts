/**
 * Bearer keys. Cookies are ignored: some clients send the key there as well. Runs before the body is read, so a
 * stranger costs one lookup and no parsing.
 */
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../core/access.ts';
import { CatnapError } from '../../errors.ts';
import type { App } from '../app-type.ts';

export type Authenticate = (token: string, remoteAddress: string) => Promise<Caller | undefined>;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the auth plugin; handlers read it through `callerOf`. */
    caller: Caller | null;
  }
}

/** Guards against guessing; see the rate limit. */
export interface GuessGuard {
  /** Throws when this address has failed too often lately and the token is not one that worked before. */
  check(remoteAddress: string, token: string): void;
  failed(remoteAddress: string): void;
  succeeded(token: string): void;
}

/** Longer than any key that can be configured. */
const tokenLengthMax = 256;

export function useAuth(app: App, options: { authenticate: Authenticate; guard: GuessGuard }): void {
  app.addHook('onRequest', async (request) => {
    const caller = await authenticateRequest(request, options);
    if (caller === undefined) throw unauthenticated();
    request.caller = caller;
  });
}

/** Undefined when there is no key or a wrong one. Routes with another way in (`/metrics`) call it themselves. */
export async function authenticateRequest(
  request: FastifyRequest,
  options: { authenticate: Authenticate; guard: GuessGuard },
): Promise<Caller | undefined> {
  const token = bearerToken(request.headers.authorization);
  if (token === undefined) return undefined;
  options.guard.check(request.ip, token);
  const caller = await options.authenticate(token, request.ip);
  if (caller === undefined) options.guard.failed(request.ip);
  else options.guard.succeeded(token);
  return caller;
}

export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw unauthenticated();
  return request.caller;
}

function bearerToken(header: string | undefined): string | undefined {
  const token = /^Bearer +(\S+) *$/i.exec(header ?? '')?.[1];
  return token !== undefined && token.length <= tokenLengthMax ? token : undefined;
}

function unauthenticated(): CatnapError {
  return new CatnapError('unauthenticated', 'supplied credentials do not pass authentication');
}
