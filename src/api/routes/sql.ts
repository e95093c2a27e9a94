/**
 * SQL over HTTP, at the HTTP port because drivers expect it there. Nothing is read here: the request goes to a proxy,
 * which knows passwords, limits and computes, and its answer comes back as it is.
 */
import { type IncomingMessage, request as openRequest, validateHeaderValue } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App } from '../kit/app-type.ts';
import { type Proxies, unreachable } from '../kit/proxies.ts';
import { ProxyLines } from '../kit/proxy-lines.ts';
import { connected } from '../kit/proxy-request.ts';
import { openBody, type RequestBody } from '../kit/request-body.ts';

/** All headers that the proxy reads, except those that frame the body. */
const passedOn = /^(neon-.*|authorization)$/;
const passedBack = /^(neon-.*|access-control-.*|allow|content-(type|length|disposition))$/;
/** The rows of a statement as a file. */
const exportPath = '/sql/export';

export function sqlRoutes(app: App, proxies: Proxies): void {
  const lines = new ProxyLines(proxies);
  app.removeAllContentTypeParsers();
  // As a stream, whatever the type says: drivers send JSON as text/plain to spare a browser the preflight.
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.route({
    method: ['POST', 'OPTIONS'],
    url: '/sql',
    config: { isPublic: true },
    schema: { hide: true },
    handler: (request, reply) => passOn(lines, request, reply),
  });
  app.route({
    method: ['POST', 'OPTIONS'],
    url: exportPath,
    config: { isPublic: true },
    schema: { hide: true },
    handler: (request, reply) => passExportOn(proxies, request, reply),
  });
  app.addHook('onClose', async () => lines.close());
}

async function passOn(lines: ProxyLines, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const body = await openBody(request.method === 'POST' && isStream(request.body) ? request.body : null);
  const exchange = await lines.open();
  // A caller that disconnects cancels its query.
  reply.raw.once('close', () => exchange.abandon());
  if (reply.raw.closed) exchange.abandon();
  const asked = exchange.ask({ head: headOf(request, body), body: body.first, rest: body.sendRest });
  const answer = await unlessLeft(reply, asked);
  if (answer === null) return reply.hijack();
  return reply
    .code(answer.status)
    .header('cross-origin-resource-policy', 'cross-origin')
    .headers(pick(answer.headers, passedBack))
    .send(answer.body);
}

/** A file has no length until its end, so its request has a connection of its own, with the framing of `node:http`. */
async function passExportOn(proxies: Proxies, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const headers = { ...pick(request.headers, passedOn), 'x-catnap-client-address': request.ip };
  const path = `${exportPath}${searchOf(request.url)}`;
  const upstream = await proxies.reachOne((socketPath) =>
    connected(openRequest({ socketPath, path, method: request.method, agent: false, headers })),
  );
  // A caller that disconnects cancels its query.
  reply.raw.once('close', () => upstream.destroy());
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    upstream.once('response', resolve);
    upstream.on('error', (cause) => reject(unreachable(cause)));
  });
  if (request.method === 'POST' && isStream(request.body)) request.body.pipe(upstream);
  else upstream.end();
  const answer = await unlessLeft(reply, answered);
  if (answer === null) return reply.hijack();
  return reply
    .code(answer.statusCode ?? 502)
    .header('cross-origin-resource-policy', 'cross-origin')
    .headers(pick(answer.headers, passedBack))
    .send(answer);
}

/** Null for a caller that has disconnected: a query that ends without an answer then is no failure. */
async function unlessLeft<T>(reply: FastifyReply, answered: Promise<T>): Promise<T | null> {
  try {
    return await answered;
  } catch (error) {
    if (reply.raw.closed) return null;
    throw error;
  }
}

/**
 * The body's framing is always stated, and is ours. Otherwise the proxy could take a body for the next request: one
 * with any client address that its sender likes, on a connection that others use too.
 */
function headOf(request: FastifyRequest, body: RequestBody): string {
  const lines = [`${request.method} /sql${searchOf(request.url)} HTTP/1.1`, 'host: proxy'];
  const headers = { ...pick(request.headers, passedOn), 'x-catnap-client-address': request.ip, ...body.framing };
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderValue(name, value);
    lines.push(`${name}: ${value}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** The query string with its question mark; it may name the endpoint. */
function searchOf(url: string): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start).replace(/[^!-~]/g, encodeURIComponent);
}

function isStream(body: unknown): body is Readable {
  return typeof body === 'object' && body !== null && 'pipe' in body;
}

function pick(headers: NodeJS.Dict<string | string[]>, names: RegExp): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string' && names.test(name)) kept[name] = value;
  }
  return kept;
}
