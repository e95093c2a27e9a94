/**
 * Reading of request bodies: JSON or nothing. An empty body is no body whatever the content type says, because axios
 * and neonctl announce JSON on requests that carry none. The text as it arrived is kept for the Idempotency-Key.
 */
import type { FastifyRequest } from 'fastify';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import { unsupportedMediaType } from './errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it arrived; empty when there was none. */
    bodyText: string;
  }
}

export function useJsonBody(app: App): void {
  app.decorateRequest('bodyText', '');
  app.removeAllContentTypeParsers();
  // Refuses __proto__ and constructor keys, which JSON.parse would let through.
  const parse = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request: FastifyRequest, text, done) => {
    const body = text.toString();
    request.bodyText = body;
    if (body.trim() === '') return done(null, undefined);
    parse(request, body, (error, value) => (error ? done(notJson(error)) : done(null, value)));
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    if (body.length === 0) return done(null, undefined);
    done(unsupportedMediaType());
  });
  app.addHook('preValidation', async (request) => {
    // So that a missing body is reported as the missing fields, and an optional one needs no special case.
    if (request.body === undefined && request.routeOptions.schema?.body !== undefined) request.body = {};
  });
}

function notJson(error: Error): CatnapError {
  return new CatnapError('invalid_request', 'invalid request: the body is not valid JSON', { cause: error });
}
