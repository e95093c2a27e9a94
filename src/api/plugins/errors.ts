/**
 * Turns every failure into a reply. Known errors carry their own status and message; anything else is answered with a
 * bland sentence and logged with its cause under the request id.
 */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { databaseFailure } from '../../lib/database-failure.ts';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import { setRequestIdHeaders } from './request-id.ts';
import { methodsOf } from './route-table.ts';

export const bodyLimitBytes = 1024 * 1024;
/** How long a client that was refused has to read why. */
const closeMs = 1_000;

/** `sendPage` answers a person who has opened an address that does not exist. */
export function useErrors(app: App, sendPage: (reply: FastifyReply) => FastifyReply): void {
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    const methods = methodsOf(app.routeTable, path);
    if (methods.length > 0) {
      reply.header('allow', methods.join(', '));
      return sendError(
        new CatnapError(
          'method_not_allowed',
          `method ${request.method} is not allowed here; allowed: ${methods.join(', ')}`,
        ),
        request,
        reply,
      );
    }
    if (isOpenedInBrowser(request, path)) return sendPage(reply.status(404));
    return sendError(new CatnapError('not_found', 'path not found'), request, reply);
  });
}

/** Browsers ask for HTML when somebody opens an address; programs, and the scripts of pages, do not. */
function isOpenedInBrowser({ method, headers }: FastifyRequest, path: string): boolean {
  return method === 'GET' && !/^\/(api|assets)\//.test(path) && /\btext\/html\b/.test(headers.accept ?? '');
}

export function sendError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = toCatnapError(thrown);
  const { status, code } = error.facts;
  // What Catnap does not offer is no failure of it: the log of requests has it.
  if (status >= 500 && error.kind !== 'not_offered')
    request.log.error({ err: thrown, kind: error.kind }, 'request failed');
  setRequestIdHeaders(reply);
  if (error.retryAfterSeconds !== undefined) reply.header('retry-after', String(error.retryAfterSeconds));
  if (error.kind === 'unauthenticated') reply.header('www-authenticate', 'Bearer');
  return reply.status(status).send({ request_id: request.id, code, message: error.message });
}

/** Replies to bytes that are not HTTP, or not in time; there is no request yet. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const reason = STATUS_CODES[status] ?? 'Bad Request';
  answerOnSocket(socket, status, `invalid request: ${reason.toLowerCase()}`);
}

/** Replies where there is no request that could be replied to, and closes the connection. */
export function answerOnSocket(
  socket: Duplex,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = JSON.stringify({ request_id: '', code: '', message });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  // A client that goes on sending and never closes its side would keep the connection for as long as it likes.
  const closing = setTimeout(() => socket.destroy(), closeMs);
  socket.once('close', () => clearTimeout(closing));
}

function toCatnapError(thrown: unknown): CatnapError {
  if (thrown instanceof CatnapError) return thrown;
  const { code, statusCode } = factsOf(thrown);
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new CatnapError('too_large', `request body is larger than ${bodyLimitBytes} bytes`);
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return unsupportedMediaType();
  // First, because a client that goes away and a database that does have the same code.
  if (thrown instanceof Error && statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new CatnapError('invalid_request', `invalid request: ${lowerFirst(thrown.message)}`, { cause: thrown });
  }
  const failure = databaseFailure(thrown);
  if (failure !== null) {
    return new CatnapError('unavailable', databaseMessages[failure], { cause: thrown, retryAfterSeconds: 1 });
  }
  if (code !== undefined && fullDiskCodes.has(code)) {
    return new CatnapError('disk_full', fullDiskMessage, { cause: thrown, retryAfterSeconds: 1 });
  }
  return new CatnapError('internal', 'internal error; the log has the cause under the request id', { cause: thrown });
}

export function unsupportedMediaType(): CatnapError {
  return new CatnapError('unsupported_media_type', 'request bodies are JSON; send content-type: application/json');
}

const databaseMessages = {
  not_begun: 'the system database is not reachable; try again',
  lost:
    'the connection to the system database was lost; try again, but look first whether a change was made, ' +
    'unless the request had an Idempotency-Key',
} as const;

/** The system database, or Catnap itself, found no room; Postgres has rolled back what the request did. */
const fullDiskCodes: ReadonlySet<string> = new Set(['53100', 'ENOSPC', 'EDQUOT']);
const fullDiskMessage =
  'the disk of the machine is full, and nothing was changed: delete projects or branches, purge deleted ones, and try ' +
  'again';

function factsOf(thrown: unknown): { code?: string; statusCode?: number } {
  if (typeof thrown !== 'object' || thrown === null) return {};
  const { code, statusCode } = thrown as { code?: unknown; statusCode?: unknown };
  return {
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof statusCode === 'number' ? { statusCode } : {}),
  };
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
