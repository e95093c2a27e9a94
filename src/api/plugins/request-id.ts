/** Every request has an id: the caller's own if it is sane, else a new one. It is echoed, and in each log line. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { App } from '../kit/app-type.ts';

/** Bounded and plain, because the id is echoed in headers and written to logs. */
const sanePattern = /^[\w.-]{1,128}$/;

export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && sanePattern.test(given) ? given : randomUUID();
}

export function setRequestIdHeaders(reply: FastifyReply): void {
  reply.header('x-request-id', reply.request.id);
  // The header in which published clients expect it.
  reply.header('x-neon-ret-request-id', reply.request.id);
}

export function useRequestId(app: App): void {
  app.addHook('onRequest', (_request, reply, done) => {
    setRequestIdHeaders(reply);
    done();
  });
}
