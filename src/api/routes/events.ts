/** Server-sent events: the operations that the caller may see, as they begin, move and end. */
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { ChangeFeed } from '../../core/changes.ts';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { type Access, authenticateRequest, callerOf } from '../plugins/auth.ts';
import { errorReply } from '../schemas/error.ts';
import { operationView } from '../views/operation.ts';

/** Each holds a socket for as long as its client is connected. */
const streamsMax = 500;
const streamsOfKeyMax = 40;
/** Keeps proxies from closing the stream, and ends it if a sign-in has expired. A revoked key is announced. */
export const heartbeatMs = 15_000;
/** A reader that is this far behind is cut off; it opens a new stream and reads everything again. */
const unreadBytesMax = 1024 * 1024;

export function eventRoutes(app: App, parts: ApiParts, access: Access): void {
  const feed = new ChangeFeed(parts.core, (error) => parts.log.warn({ err: error }, 'changes could not be read'));
  const streams = new Set<ServerResponse>();
  const endAll = () => {
    for (const stream of streams) stream.end();
  };
  parts.draining?.addEventListener('abort', endAll);
  app.addHook('preClose', async () => {
    endAll();
    await feed.close();
  });

  const schema = {
    tags: ['Operations'],
    operationId: 'streamEvents',
    summary: 'Follow changes',
    description:
      'Server-sent events, an addition of Catnap’s. Each `operation` event carries an operation that has begun, ' +
      'changed or ended, of any project that the key reaches. Nothing is sent again after a break: look once, then follow.',
    response: { 200: Type.String({ description: 'A stream of type text/event-stream.' }), ...errorReply },
  };
  app.get('/events', { schema, exposeHeadRoute: false }, async (request, reply) => {
    const caller = callerOf(request);
    if (feed.size >= streamsMax || feed.countOf(caller.keyId) >= streamsOfKeyMax) {
      throw new CatnapError('rate_limited', 'too many event streams are open', { retryAfterSeconds: 10 });
    }
    let stream: ServerResponse | null = null;
    const endIfRevoked = async () => {
      const still = await authenticateRequest(request, access).catch(() => caller);
      if (still === undefined) stream?.end();
      return still !== undefined;
    };
    // Before the stream begins: a feed that cannot start is answered like any other failure.
    const stop = await feed.watch({
      caller,
      onChange: (operation) => stream && send(stream, 'operation', { operation: operationView(operation) }),
      onKeysChanged: () => void endIfRevoked(),
    });
    stream = beginStream(reply);
    follow(stream, endIfRevoked, stop);
    // The key may have been revoked between the check of the request and the first notification.
    await endIfRevoked();
    return reply;
  });

  function follow(stream: ServerResponse, endIfRevoked: () => Promise<boolean>, stop: () => void): void {
    streams.add(stream);
    if (parts.draining?.aborted) return void stream.end();
    const heartbeat = setInterval(async () => {
      if (await endIfRevoked()) stream.write(': still here\n\n');
    }, heartbeatMs);
    const end = () => {
      clearInterval(heartbeat);
      streams.delete(stream);
      stop();
    };
    stream.on('close', end);
    if (stream.destroyed) end();
    send(stream, 'ready', {});
  }
}

function beginStream(reply: FastifyReply): ServerResponse {
  reply.hijack();
  const { raw } = reply;
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value);
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    connection: 'close',
  });
  return raw;
}

function send(stream: ServerResponse, event: string, data: object): void {
  if (stream.writableLength > unreadBytesMax) return void stream.destroy();
  stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
