/**
 * SQL over HTTP, at the HTTP port because drivers expect it there. Nothing is read here: the request goes to a proxy,
 * which knows passwords, limits and computes, and its answer comes back as it is. Proxies take turns; one that does not
 * accept connections is skipped.
 *
 * `@fastify/reply-from` was tried and is not used: it pipes the body into a request that is not connected yet. If
 * the first proxy is gone, the body is destroyed with that request, and nothing is left for the next one.
 */
import { type ClientRequest, request as openRequest } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';

/** All headers that the proxy reads, except those that frame the body. */
const passedOn = /^(neon-.*|authorization)$/;
const passedBack = /^(neon-.*|access-control-.*|allow|content-(type|length))$/;

export function sqlRoutes(app: App, proxySockets: readonly string[]): void {
  let turn = 0;
  app.removeAllContentTypeParsers();
  // As a stream, whatever the type says: drivers send JSON as text/plain to spare a browser the preflight.
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.route({
    method: ['POST', 'OPTIONS'],
    url: '/sql',
    config: { isPublic: true },
    schema: { hide: true },
    handler: (request, reply) => {
      turn = (turn + 1) % Math.max(1, proxySockets.length);
      return passOn([...proxySockets.slice(turn), ...proxySockets.slice(0, turn)], request, reply);
    },
  });
}

async function passOn(sockets: readonly string[], request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const body = request.method === 'POST' && isStream(request.body) ? request.body : null;
  const headers = {
    ...pick(request.headers, passedOn),
    ...framing(request, body),
    'x-catnap-client-address': request.ip,
  };
  const upstream = await reachOne(sockets, (socketPath) =>
    openRequest({ socketPath, path: `/sql${searchOf(request.url)}`, method: request.method, headers }),
  );
  // A caller that disconnects cancels its query.
  reply.raw.once('close', () => upstream.destroy());
  if (reply.raw.closed) upstream.destroy();
  // An answer may come before the whole request. The rest is discarded, so that the connection can be used again.
  upstream.once('close', () => request.raw.unpipe(upstream).resume());
  const answer = await new Promise<Readable & { statusCode?: number; headers: NodeJS.Dict<string | string[]> }>(
    (resolve, reject) => {
      upstream.once('response', resolve);
      upstream.once('error', (cause) => reject(unreachable(cause)));
      if (body === null) upstream.end();
      else body.pipe(upstream);
    },
  );
  // Errors of the pipe after an early answer do not matter.
  upstream.on('error', () => {});
  return reply
    .code(answer.statusCode ?? 502)
    .header('cross-origin-resource-policy', 'cross-origin')
    .headers(pick(answer.headers, passedBack))
    .send(answer);
}

/** The query string with its question mark; it may name the endpoint. */
function searchOf(url: string): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start);
}

/** Connects to the first proxy that accepts. Nothing has been sent before that, so the next one may be tried. */
async function reachOne(
  sockets: readonly string[],
  open: (socketPath: string) => ClientRequest,
): Promise<ClientRequest> {
  let cause = new Error('there is no proxy');
  for (const socketPath of sockets) {
    const upstream = open(socketPath);
    try {
      await connected(upstream);
      return upstream;
    } catch (thrown) {
      cause = thrown instanceof Error ? thrown : cause;
    }
  }
  throw unreachable(cause);
}

function connected(upstream: ClientRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    upstream.once('error', reject);
    const finish = () => {
      upstream.off('error', reject);
      resolve();
    };
    upstream.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', finish);
      else finish();
    });
  });
}

/**
 * Always said in so many words. For some methods Node writes a body of unknown length as it is, and the proxy would
 * take it for the next request: one with any client address that a stranger likes, on a connection that others use too.
 */
function framing(request: FastifyRequest, body: Readable | null): Record<string, string> {
  if (body === null) return { 'content-length': '0' };
  const length = request.headers['content-length'];
  return length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': length };
}

function isStream(body: unknown): body is Readable {
  return typeof body === 'object' && body !== null && 'pipe' in body;
}

function pick(headers: NodeJS.Dict<string | string[]>, names: RegExp): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && names.test(name)) kept[name] = value;
  }
  return kept;
}

function unreachable(cause: Error): CatnapError {
  return new CatnapError('unavailable', 'the proxy does not answer; try again', { cause, retryAfterSeconds: 1 });
}
