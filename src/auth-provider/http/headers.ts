/** Both families of header names: `x-stack-…` of the older SDKs and `x-hexclave-…` of the newer ones. */
import type { FastifyRequest } from 'fastify';

const families = ['stack', 'hexclave'];

/** Longer than any valid value; an access token is about 1 kB. */
const lengthMax = 8_192;

export function readHeader(request: FastifyRequest, name: string): string | undefined {
  for (const family of families) {
    const value = request.headers[`x-${family}-${name}`];
    if (typeof value === 'string' && value !== '' && value.length <= lengthMax) return value;
  }
  return undefined;
}

const requestHeaders = [
  'project-id',
  'branch-id',
  'access-type',
  'publishable-client-key',
  'secret-server-key',
  'super-secret-admin-key',
  'admin-access-token',
  'access-token',
  'refresh-token',
  'override-error-status',
  'client-version',
  'random-nonce',
  'allow-anonymous-user',
  'allow-restricted-user',
  'disable-artificial-development-delay',
];

const everyFamily = (names: readonly string[]) =>
  names.flatMap((name) => families.map((family) => `x-${family}-${name}`));

/** Pages of any origin may call the API: it takes no cookies, so a page can do no more than its own keys allow. */
export const corsHeaders: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': [
    'content-type',
    'retry-after',
    ...everyFamily(['actual-status', 'known-error', 'request-id']),
  ].join(', '),
};

export const preflightHeaders: Readonly<Record<string, string>> = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-max-age': '86400',
  'access-control-allow-headers': [
    'content-type',
    'authorization',
    'baggage',
    'sentry-trace',
    'ngrok-skip-browser-warning',
    ...everyFamily(requestHeaders),
  ].join(', '),
};
