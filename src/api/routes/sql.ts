/**
 * SQL over HTTP, at the HTTP port because drivers expect it there. Nothing is read here: the request goes to a proxy,
 * which knows passwords, limits and computes, and its answer comes back as it is.
 *
 * `@fastify/reply-from` was tried and is not used: it pipes the body into a request that is not connected yet. If
 * the first proxy is gone, the body is destroyed with that request, and nothing is left for the next one.
 */
import { request as openRequest } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App } from '../kit/app-type.ts';
import { type Proxies, unreachable } from '../kit/proxies.ts';

/** All headers that the proxy reads, except those that frame the body. */
const passedOn = /^(neon-.*|authorization)$/;
const passedBack = /^(neon-.*|access-control-.*|allow|content-(type|length))$/;

export function sqlRoutes(app: App, proxies: Proxies): void {
  app.removeAllContentTypeParsers();
  // As a stream, whatever the type says: drivers send JSON as text/plain to spare a browser the preflight.
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.route({
    method: ['POST', 'OPTIONS'],
    url: '/sql',
    config: { isPublic: true },
    schema: { hide: true },
    handler: (request, reply) => passOn(proxies, request, reply),
  });
}

async function passOn(proxies: Proxies, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const body = request.method === 'POST' && isStream(request.body) ? request.body : null;
  const headers = {
    ...pick(request.headers, passedOn),
    ...framing(request, body),
    'x-catnap-client-address': request.ip,
  };
  const upstream = await proxies.reachOne((socketPath) =>
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
