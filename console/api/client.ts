/**
 * The one way to the server: the public API, with the cookie of the sign-in, which the browser adds by itself. The
 * header proves that our own page sent the request.
 */

const apiPrefix = '/api/v2';
const consoleHeaders = { 'x-catnap-console': '1' };

export class ApiError extends Error {
  readonly status: number;
  readonly requestId: string;

  constructor(status: number, message: string, requestId = '') {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.requestId = requestId;
  }
}

/** The server did not answer at all. */
export class OfflineError extends Error {
  constructor() {
    super('Catnap does not answer. Is it running?');
    this.name = 'OfflineError';
  }
}

/** A proxy in front of a server that is gone answers so, and the server itself while its database does not answer. */
const passingStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

export const isPassingStatus = (status: number) => passingStatuses.has(status);

/** What the same question may not meet a moment later. */
export const isPassing = (error: unknown) =>
  error instanceof OfflineError || (error instanceof ApiError && isPassingStatus(error.status));

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

export interface CallOptions {
  readonly body?: object;
  readonly signal?: AbortSignal;
}

export function api<T>(method: Method, path: string, options: CallOptions = {}): Promise<T> {
  return send<T>(method, `${apiPrefix}${path}`, options);
}

/** A path of the server outside the API. */
export async function send<T>(method: Method, path: string, options: CallOptions = {}): Promise<T> {
  const { body, signal } = options;
  const response = await reach(path, {
    method,
    headers: { ...consoleHeaders, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  const parsed: unknown = text === '' ? {} : parseJson(text);
  if (!response.ok) throw toError(response.status, parsed);
  return parsed as T;
}

/** For replies that come in pieces. */
export function openStream(path: string, signal: AbortSignal): Promise<Response> {
  return reach(`${apiPrefix}${path}`, { headers: consoleHeaders, signal });
}

/** A server that starts, or a proxy in front of one that is gone, answers with a failure of its own. */
export async function isReachable(): Promise<boolean> {
  try {
    return (await reach('/console/session', { headers: consoleHeaders })).status < 500;
  } catch {
    return false;
  }
}

const fromUs = { credentials: 'same-origin', cache: 'no-store' } as const;

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...fromUs, ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new OfflineError();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function toError(status: number, body: unknown): ApiError {
  const { message, request_id } = body as { message?: string; request_id?: string };
  return new ApiError(status, begun(message ?? `the server answered with status ${status}`), request_id);
}

/** The API's sentences have no capital at their beginning; a name that one begins with stays as it is. */
const begun = (text: string) => text.replace(/^[a-z](?=[a-z’']*[ ,;:]+[a-z])/, (letter) => letter.toUpperCase());

/** A path with each value made safe: `at\`/projects/${id}\``. */
export function at(strings: TemplateStringsArray, ...values: readonly string[]): string {
  return strings.reduce((path, text, index) => path + encodeURIComponent(values[index - 1] ?? '') + text);
}

export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.append(name, String(value));
  return given.size === 0 ? path : `${path}?${given}`;
}
