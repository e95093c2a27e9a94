/**
 * Bearer keys, and sign-ins of the console by cookie. Other cookies are ignored: some clients send the key there as
 * well. Runs before the body is read, so an unauthenticated request costs one lookup and no parsing.
 */
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../core/access.ts';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';

export type Authenticate = (token: string, remoteAddress: string) => Promise<Caller | undefined>;

/** The caller that the console's cookie stands for; undefined without one, or when another site may have sent it. */
export type FindSignedIn = (request: FastifyRequest) => Promise<Caller | undefined>;

export interface Access {
  readonly authenticate: Authenticate;
  readonly guard: GuessGuard;
  readonly findSignedIn: FindSignedIn;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the auth plugin; handlers read it through `callerOf`. */
    caller: Caller | null;
  }
}

/** Guards against guessed keys; made in `rate-limit.ts`. */
export interface GuessGuard {
  /** Throws when this address has failed too often lately and the token is not one that worked before. */
  check(remoteAddress: string, token: string): void;
  failed(remoteAddress: string): void;
  succeeded(token: string): void;
}

/** Longer than any key that can be configured. */
export const tokenLengthMax = 256;

/** A reply that took longer than this, such as a schema that is read from a server, is checked again. */
const longReplyMs = 500;

export function useAuth(app: App, options: Access): void {
  app.addHook('onRequest', async (request) => {
    const caller = await authenticateRequest(request, options);
    if (caller === undefined) throw unauthenticated();
    request.caller = caller;
  });
  // What was asked for with a key that was revoked meanwhile is not sent. A change has happened, and is reported.
  app.addHook('preSerialization', async (request, reply, payload) => {
    if (request.method !== 'GET' || reply.statusCode >= 400 || reply.elapsedTime < longReplyMs) return payload;
    if ((await authenticateRequest(request, options)) === undefined) throw unauthenticated();
    return payload;
  });
}

/** Undefined when there is no credential or a wrong one. Routes with another way in (`/metrics`) call it themselves. */
export async function authenticateRequest(request: FastifyRequest, options: Access): Promise<Caller | undefined> {
  if (request.headers.authorization === undefined) return options.findSignedIn(request);
  const token = bearerToken(request.headers.authorization);
  return token === undefined ? undefined : authenticateToken(request, token, options);
}

/** Counts failures of an address, wherever a key comes from. */
export async function authenticateToken(
  request: FastifyRequest,
  token: string,
  options: Pick<Access, 'authenticate' | 'guard'>,
): Promise<Caller | undefined> {
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

export function bearerToken(header: string | undefined): string | undefined {
  const token = /^Bearer +(\S+) *$/i.exec(header ?? '')?.[1];
  return token !== undefined && token.length <= tokenLengthMax ? token : undefined;
}

function unauthenticated(): CatnapError {
  return new CatnapError('unauthenticated', 'supplied credentials do not pass authentication');
}
