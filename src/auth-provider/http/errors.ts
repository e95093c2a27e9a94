/**
 * How the provider refuses requests. Known errors are those that the SDKs know by their code: an unknown code makes
 * them throw, so none is invented. Everything else is plain text with a status, as in the original.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { databaseFailure } from '../../lib/database-failure.ts';
import { CatnapError } from '../../lib/errors.ts';
import { readHeader } from './headers.ts';

const knownStatuses = {
  SCHEMA_ERROR: 400,
  BODY_PARSING_ERROR: 400,
  ACCESS_TYPE_REQUIRED: 400,
  INVALID_ACCESS_TYPE: 400,
  ACCESS_TYPE_WITHOUT_PROJECT_ID: 400,
  PROJECT_KEY_WITHOUT_ACCESS_TYPE: 400,
  CURRENT_PROJECT_NOT_FOUND: 400,
  CANNOT_GET_OWN_USER_WITHOUT_USER: 400,
  USER_ID_DOES_NOT_EXIST: 400,
  EMAIL_PASSWORD_MISMATCH: 400,
  PASSWORD_TOO_SHORT: 400,
  PASSWORD_TOO_LONG: 400,
  PASSWORD_CONFIRMATION_MISMATCH: 400,
  USER_DOES_NOT_HAVE_PASSWORD: 400,
  PASSWORD_AUTHENTICATION_NOT_ENABLED: 400,
  SIGN_UP_NOT_ENABLED: 400,
  ANONYMOUS_ACCOUNTS_NOT_ENABLED: 400,
  REDIRECT_URL_NOT_WHITELISTED: 400,
  INVALID_OAUTH_CLIENT_ID_OR_SECRET: 400,
  CANNOT_DELETE_CURRENT_SESSION: 400,
  VERIFICATION_CODE_EXPIRED: 400,
  OAUTH_PROVIDER_NOT_FOUND_OR_NOT_ENABLED: 400,
  OAUTH_PROVIDER_ACCESS_DENIED: 400,
  OAUTH_ACCESS_TOKEN_NOT_AVAILABLE: 400,
  INVALID_AUTHORIZATION_CODE: 400,
  INSUFFICIENT_ACCESS_TYPE: 401,
  INVALID_PUBLISHABLE_CLIENT_KEY: 401,
  INVALID_SECRET_SERVER_KEY: 401,
  INVALID_SUPER_SECRET_ADMIN_KEY: 401,
  SERVER_AUTHENTICATION_REQUIRED: 401,
  ADMIN_AUTHENTICATION_REQUIRED: 401,
  PUBLISHABLE_CLIENT_KEY_REQUIRED_FOR_PROJECT: 401,
  UNPARSABLE_ACCESS_TOKEN: 401,
  ACCESS_TOKEN_EXPIRED: 401,
  INVALID_PROJECT_FOR_ACCESS_TOKEN: 401,
  REFRESH_TOKEN_NOT_FOUND_OR_EXPIRED: 401,
  USER_AUTHENTICATION_REQUIRED: 401,
  USER_NOT_FOUND: 404,
  PROJECT_NOT_FOUND: 404,
  API_KEY_NOT_FOUND: 404,
  VERIFICATION_CODE_NOT_FOUND: 404,
  OUTER_OAUTH_TIMEOUT: 408,
  USER_EMAIL_ALREADY_EXISTS: 409,
  EMAIL_ALREADY_VERIFIED: 409,
  VERIFICATION_CODE_ALREADY_USED: 409,
  CONTACT_CHANNEL_ALREADY_USED_FOR_AUTH_BY_SOMEONE_ELSE: 409,
  OAUTH_CONNECTION_ALREADY_CONNECTED_TO_ANOTHER_USER: 409,
  USER_ALREADY_CONNECTED_TO_ANOTHER_OAUTH_CONNECTION: 409,
  OAUTH_PROVIDER_TEMPORARILY_UNAVAILABLE: 503,
} as const;

export type KnownCode = keyof typeof knownStatuses;
export const knownCodes = Object.keys(knownStatuses) as readonly KnownCode[];

export class AuthProviderError extends Error {
  readonly status: number;
  /** Null for plain errors. */
  readonly code: KnownCode | null;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    status: number,
    code: KnownCode | null,
    message: string,
    more: { details?: Readonly<Record<string, unknown>>; retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.name = 'AuthProviderError';
    this.status = status;
    this.code = code;
    this.details = more.details;
    this.retryAfterSeconds = more.retryAfterSeconds;
  }
}

export function known(
  code: KnownCode,
  message: string,
  details?: Readonly<Record<string, unknown>>,
): AuthProviderError {
  return new AuthProviderError(knownStatuses[code], code, message, details === undefined ? {} : { details });
}

export function schemaError(message: string): AuthProviderError {
  return known('SCHEMA_ERROR', message, { message });
}

export function plain(status: number, message: string): AuthProviderError {
  return new AuthProviderError(status, null, message);
}

export function tooMany(retryAfterSeconds: number): AuthProviderError {
  return new AuthProviderError(429, null, 'Too many attempts. Please wait.', { retryAfterSeconds });
}

/** For the error handler: sends whatever was thrown in the form that the provider's clients expect. */
export function sendAuthProviderError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = toAuthProviderError(thrown);
  if (error.status >= 500) request.log.error({ err: thrown }, 'request to the auth provider failed');
  if (error.retryAfterSeconds !== undefined) reply.header('retry-after', String(error.retryAfterSeconds));
  setStatus(error, request, reply);
  if (error.code === null) return reply.type('text/plain; charset=utf-8').serializer(String).send(error.message);
  for (const family of ['stack', 'hexclave']) reply.header(`x-${family}-known-error`, error.code);
  const details = error.details === undefined ? {} : { details: error.details };
  return reply
    .type('application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send({ code: error.code, error: error.message, ...details });
}

/** SDKs ask for 200 with the real status in a header, so that browsers do not log every refusal as a failure. */
function setStatus(error: AuthProviderError, request: FastifyRequest, reply: FastifyReply): void {
  const wantsOverride = readHeader(request, 'override-error-status') === 'true';
  if (!wantsOverride || error.status >= 500 || error.status === 429) {
    reply.status(error.status);
    return;
  }
  for (const family of ['stack', 'hexclave']) reply.header(`x-${family}-actual-status`, String(error.status));
  reply.status(200);
}

function toAuthProviderError(thrown: unknown): AuthProviderError {
  if (thrown instanceof AuthProviderError) return thrown;
  const status = statusOf(thrown);
  const message = thrown instanceof Error ? thrown.message : '';
  if (status === 400) return schemaError(message);
  if (status !== undefined && status < 500) return plain(status, message);
  if (status === 503) {
    const again = 'The provider is not available at the moment. Try again.';
    return new AuthProviderError(503, null, again, { retryAfterSeconds: 1 });
  }
  return plain(500, 'Internal error. The log has the cause under the request id.');
}

export function statusOf(thrown: unknown): number | undefined {
  if (thrown instanceof AuthProviderError) return thrown.status;
  if (thrown instanceof CatnapError) return thrown.facts.status;
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  if (databaseFailure(thrown) !== null) return 503;
  return 'statusCode' in thrown && typeof thrown.statusCode === 'number' ? thrown.statusCode : undefined;
}
