/** Request bodies: JSON, and the one form of the OAuth token endpoint. An empty body is none, whatever its type. */
import type { FastifyRequest } from 'fastify';
import type { AuthProviderApp } from './app-type.ts';
import { AuthProviderError, known, schemaError } from './errors.ts';

export function useBodies(app: AuthProviderApp): void {
  app.removeAllContentTypeParsers();
  // Refuses __proto__ and constructor keys, which JSON.parse would let through.
  const parse = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request: FastifyRequest, text, done) => {
    if (text.toString().trim() === '') return done(null, undefined);
    parse(request, text.toString(), (error, value) => (error ? done(notJson()) : done(null, value)));
  });
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, text, done) => {
    done(null, Object.fromEntries(new URLSearchParams(text.toString())));
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(
      body.length === 0 ? null : new AuthProviderError(415, null, 'Send JSON, with content-type: application/json.'),
    );
  });
  app.addHook('preValidation', async (request) => requireShallow(request.body));
}

/** Metadata may be any JSON; this keeps code that walks over it from running out of stack. */
const depthMax = 64;

function requireShallow(body: unknown): void {
  let level: unknown[] = [body];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax) throw schemaError(`body must not be nested deeper than ${depthMax} levels`);
    level = level.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []));
  }
}

function notJson(): AuthProviderError {
  return known('BODY_PARSING_ERROR', 'The body is not valid JSON.');
}
