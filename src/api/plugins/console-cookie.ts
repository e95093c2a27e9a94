/**
 * The console's sign-in as a cookie. Scripts cannot read it, and it is honoured only for requests that our own pages
 * have made: a header that no form and no foreign page can send, and no sign of another origin.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { findConsoleSession, sessionDays } from '../../core/console-session.ts';
import { readScope } from '../../core/context.ts';
import type { Config } from '../../lib/config.ts';
import type { ApiParts } from '../kit/parts.ts';
import type { FindSignedIn } from './auth.ts';

/** Sent by the console with every request. A foreign page would need permission by CORS, which is never given. */
export const consoleHeader = 'x-catnap-console';

/** As long as a token is; anything else is not looked up. */
const tokenPattern = /^[A-Za-z0-9_-]{43}$/;

/** Browsers share cookies between ports: two installations on one machine need two names. */
const cookieName = (config: Config) => `catnap_console_${config.httpPort}`;

export function findSignedIn(parts: ApiParts): FindSignedIn {
  return async (request) => {
    const token = sessionTokenOf(request, parts.config);
    if (token === undefined || !isFromConsole(request, parts.config)) return undefined;
    const session = await findConsoleSession(readScope(parts.core), token);
    if (session !== undefined) parts.keyUses.record(session.caller.keyId, request.ip);
    return session?.caller;
  };
}

export function sessionTokenOf(request: FastifyRequest, config: Config): string | undefined {
  const start = `${cookieName(config)}=`;
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim());
  const token = pairs.find((pair) => pair.startsWith(start))?.slice(start.length);
  return token !== undefined && tokenPattern.test(token) ? token : undefined;
}

/** Browsers report truthfully where a request comes from; programs that report nothing carry no user's cookie. */
export function isFromConsole(request: FastifyRequest, config: Config): boolean {
  const { headers } = request;
  const site = headers['sec-fetch-site'];
  if (headers[consoleHeader] === undefined) return false;
  if (site !== undefined && site !== 'same-origin') return false;
  // A reverse proxy may have changed the Host header; it has not changed the public URL.
  return headers.origin === undefined || [headers.host, hostOf(config.publicUrl)].includes(hostOf(headers.origin));
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}

export function setSessionCookie(reply: FastifyReply, config: Config, token: string): void {
  reply.header('set-cookie', cookie(config, token, sessionDays * 24 * 60 * 60));
}

export function clearSessionCookie(reply: FastifyReply, config: Config): void {
  reply.header('set-cookie', cookie(config, '', 0));
}

function cookie(config: Config, value: string, maxAgeSeconds: number): string {
  const secure = config.publicUrl.startsWith('https:') ? '; Secure' : '';
  return `${cookieName(config)}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${secure}`;
}
