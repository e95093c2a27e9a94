/** The public API as the commands use it: JSON over HTTP with a key, a deadline, and errors that say what to do. */
import { CliFailure } from './failure.ts';
import type { ListProjectsReply, ProjectListItem } from './generated.ts';

export interface ClientOptions {
  /** With or without the version path. */
  readonly url: string;
  /** Called only when a request needs it. */
  readonly apiKey: () => Promise<string>;
  readonly timeoutMs?: number;
  /** How requests are sent, where it is not over the network. */
  readonly fetch?: Fetch;
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface ApiClient {
  readonly url: string;
  get<Reply>(path: string, query?: Query): Promise<Reply>;
  /** Null for what is not there, or is not for this key. */
  find<Reply>(path: string): Promise<Reply | null>;
  /** With a key, a repeat of the same request within a day does nothing and gets the first reply. */
  post<Reply>(path: string, body: object, query?: Query, idempotencyKey?: string): Promise<Reply>;
  patch<Reply>(path: string, body: object): Promise<Reply>;
  put<Reply>(path: string, body: object): Promise<Reply>;
  delete<Reply>(path: string): Promise<Reply>;
  /** A page beside the API that needs no key, such as `/readyz`. */
  getOpen<Reply>(path: string): Promise<Reply>;
  /** A page beside the API, with the key. */
  getBeside<Reply>(path: string): Promise<Reply>;
  postBeside<Reply>(path: string): Promise<Reply>;
  /** SQL over HTTP, at the same port: the connection string stands in for the key. */
  sql<Reply>(uri: string, body: object, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  listProjects(): Promise<readonly ProjectListItem[]>;
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** The API refused the request. */
export class ApiRefusal extends CliFailure {
  readonly status: number;
  /** What it said, if that was JSON. */
  readonly body: object | undefined;

  constructor(status: number, message: string, body?: object) {
    super(message);
    this.name = 'ApiRefusal';
    this.status = status;
    this.body = body;
  }
}

/** The API did not answer. */
export class ApiUnreachable extends CliFailure {
  override name = 'ApiUnreachable';
}

const apiPath = '/api/v2';
const pageSize = 100;
/** A query may take its time; a request of the API does not. */
const sqlTimeoutMs = 3_600_000;

export function createClient(options: ClientOptions): ApiClient {
  const url = baseUrl(options.url);
  const timeoutMs = options.timeoutMs ?? 30_000;
  const request = <Reply>(to: string, init: RequestInit, limitMs: number) =>
    send<Reply>(options.fetch ?? fetch, to, init, limitMs);
  const callBeside = async <Reply>(method: string, path: string, body?: object, key?: string): Promise<Reply> => {
    const headers = {
      authorization: `Bearer ${await options.apiKey()}`,
      ...(body && jsonBody),
      ...(key !== undefined && { 'idempotency-key': key }),
    };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    return request<Reply>(`${url}${path}`, init, timeoutMs);
  };
  const call = <Reply>(method: string, path: string, body?: object, key?: string) =>
    callBeside<Reply>(method, `${apiPath}${path}`, body, key);
  const get = <Reply>(path: string, query: Query = {}) => call<Reply>('GET', `${path}${queryText(query)}`);
  return {
    url,
    get,
    find: <Reply>(path: string) => get<Reply>(path).catch(nullIfMissing),
    post: (path, body, query = {}, key) => call('POST', `${path}${queryText(query)}`, body, key),
    patch: (path, body) => call('PATCH', path, body),
    put: (path, body) => call('PUT', path, body),
    delete: (path) => call('DELETE', path),
    getBeside: (path) => callBeside('GET', path),
    postBeside: (path) => callBeside('POST', path),
    getOpen: (path) => request(`${url}${path}`, {}, timeoutMs),
    sql: (uri, body, headers = {}) => {
      const sent = { ...jsonBody, ...headers, 'neon-connection-string': uri };
      return request(`${url}/sql`, { method: 'POST', headers: sent, body: JSON.stringify(body) }, sqlTimeoutMs);
    },
    listProjects: () => listProjects(get),
  };
}

function nullIfMissing(error: unknown): null {
  if (error instanceof ApiRefusal && error.status === 404) return null;
  throw error;
}

const jsonBody = { 'content-type': 'application/json' };

function baseUrl(given: string): string {
  const trimmed = given.replace(/\/+$/, '');
  if (!/^https?:\/\//.test(trimmed) || !URL.canParse(trimmed)) {
    throw new CliFailure(`--api-url ${given} is not a URL; allowed: one that starts with http:// or https://`, 2);
  }
  return trimmed.endsWith(apiPath) ? trimmed.slice(0, -apiPath.length) : trimmed;
}

function queryText(query: Query): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) text.set(name, String(value));
  return text.size === 0 ? '' : `?${text}`;
}

async function listProjects(get: ApiClient['get']): Promise<readonly ProjectListItem[]> {
  const found: ProjectListItem[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await get<ListProjectsReply>('/projects', { limit: pageSize, cursor });
    found.push(...page.projects);
    // A full page with the cursor that was sent would loop forever.
    if (page.projects.length < pageSize || page.pagination?.cursor === cursor) return found;
    cursor = page.pagination?.cursor;
  }
}

async function send<Reply>(via: Fetch, url: string, init: RequestInit, timeoutMs: number): Promise<Reply> {
  const reply = await via(url, { ...init, signal: AbortSignal.timeout(timeoutMs) }).catch((error: unknown) => {
    throw unreachable(new URL(url).origin, error, timeoutMs);
  });
  const text = await reply.text();
  const body = parse(text);
  if (!reply.ok) throw refusal(reply, body);
  if (body === undefined) throw new ApiRefusal(reply.status, `${url} did not answer with JSON: is it Catnap?`);
  return body as Reply;
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function refusal(reply: Response, body: object | undefined): ApiRefusal {
  const message = body && 'message' in body ? String(body.message) : reply.statusText;
  if (reply.status === 401) {
    const advice = 'pass --api-key, set CATNAP_API_KEY, or see `catnap keys show`';
    return new ApiRefusal(401, `${message}: the API key was refused; ${advice}`);
  }
  const id = body && 'request_id' in body ? `; request_id:"${String(body.request_id)}"` : '';
  return new ApiRefusal(reply.status, `${message} (HTTP ${reply.status})${reply.status >= 500 ? id : ''}`, body);
}

function unreachable(origin: string, error: unknown, timeoutMs: number): ApiUnreachable {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new ApiUnreachable(`${origin} did not answer within ${timeoutMs / 1000} s`);
  }
  return new ApiUnreachable(
    `Catnap does not answer at ${origin}; start it with \`catnap up\`, or say where it is with --api-url`,
  );
}
