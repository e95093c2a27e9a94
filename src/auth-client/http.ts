/** One request to a Stack-compatible provider. Both families of headers are sent: old and new servers read one each. */
import { ProviderError, toProviderError } from './errors.ts';

const timeoutMs = 10_000;
/** Far more than a page of users. */
const replyBytesMax = 8 * 1024 * 1024;

export interface ProviderRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Relative to `/api/v1`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Aborts the request before its timeout. */
  readonly signal?: AbortSignal;
}

export type Json = { readonly [key: string]: unknown };

/** `x-stack-<name>` and its successor. */
export function bothFamilies(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => [
      [`x-stack-${name}`, value],
      [`x-hexclave-${name}`, value],
    ]),
  );
}

export async function requestProvider(baseUrl: string, request: ProviderRequest, limitMs = timeoutMs): Promise<Json> {
  const { response, text } = await exchange(baseUrl, request, limitMs);
  const body = parse(text);
  if (response.status >= 200 && response.status < 300) {
    if (typeof body !== 'object' || body === null) {
      throw new ProviderError('refused', 'the auth provider answered with something that is not JSON');
    }
    return body as Json;
  }
  const known = response.headers.get('x-stack-known-error') ?? response.headers.get('x-hexclave-known-error');
  const inBody = typeof body === 'object' && body !== null && 'code' in body ? String(body.code) : null;
  throw toProviderError({ status: response.status, code: known ?? inBody, text });
}

async function exchange(baseUrl: string, { method, path, headers, body, signal }: ProviderRequest, limitMs: number) {
  const timeout = AbortSignal.timeout(limitMs);
  try {
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers: {
        ...headers,
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // The headers hold secrets, which are for this address alone.
      redirect: 'error',
      signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
    });
    const text = await response.text();
    if (text.length > replyBytesMax) throw new Error('the reply is too long');
    return { response, text };
  } catch (error) {
    throw new ProviderError('unreachable', 'the auth provider does not answer; try again', error);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** For fields that a reply must have. */
export function textOf(body: Json, field: string): string {
  const value = body[field];
  if (typeof value === 'string') return value;
  throw new ProviderError('refused', `the auth provider left out ${field} in its reply`);
}

export function itemsOf(body: Json): readonly Json[] {
  if (Array.isArray(body.items)) return body.items as Json[];
  throw new ProviderError('refused', 'the auth provider left out items in its reply');
}
