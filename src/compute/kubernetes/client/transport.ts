/**
 * HTTP to an API server: JSON in, JSON out, and the endless reply of a watch line by line. On `node:https`, because the
 * `fetch` of Node takes neither a certificate authority nor a client certificate.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ClusterAccess } from './access.ts';
import { errorOf, unreachable } from './api-error.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
}

/** A webhook may take 10 s to give up, and that answer says more than a timeout of ours. */
const replyMsMax = 30_000;
/** The kubelet replaces a mounted token long before it ends. */
const tokenMs = 60_000;

export class Transport {
  readonly #access: ClusterAccess;
  readonly #agent: HttpAgent;
  readonly #replyMsMax: number;
  #token: { readonly text: string; readonly readAt: number } | null = null;

  constructor(access: ClusterAccess, options: { readonly replyMsMax?: number } = {}) {
    this.#access = access;
    this.#replyMsMax = options.replyMsMax ?? replyMsMax;
    this.#agent = access.server.protocol === 'https:' ? secureAgent(access) : new HttpAgent({ keepAlive: true });
  }

  /** The parsed body of a reply that is a success; anything else is thrown. */
  async send(request: ApiRequest): Promise<unknown> {
    const reply = await this.#reply(request, this.#replyMsMax);
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of reply) chunks.push(chunk);
      return parseReply(reply, Buffer.concat(chunks).toString('utf8'));
    } catch (error) {
      throw this.#asFailure(error);
    }
  }

  /** Each line of the reply, parsed, until the server or the signal ends it; `silentMsMax` ends one that has died. */
  async *lines(request: ApiRequest, silentMsMax: number): AsyncGenerator<unknown> {
    const reply = await this.#reply(request, silentMsMax);
    try {
      if (reply.statusCode !== 200) {
        const chunks: Buffer[] = [];
        for await (const chunk of reply) chunks.push(chunk);
        parseReply(reply, Buffer.concat(chunks).toString('utf8'));
      }
      for await (const line of linesOf(reply)) yield JSON.parse(line);
    } catch (error) {
      throw this.#asFailure(error);
    } finally {
      reply.destroy();
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #reply({ method, path, query, body, contentType, signal }: ApiRequest, silentMs: number) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'catnap' };
    if (text !== undefined) {
      headers['content-type'] = contentType ?? 'application/json';
      // Node leaves it out for DELETE, and the server would take the body for the next request.
      headers['content-length'] = String(Buffer.byteLength(text));
    }
    const token = await this.#currentToken();
    if (token !== null) headers.authorization = `Bearer ${token}`;
    const url = new URL(this.#access.server.href.replace(/\/$/, '') + path);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
    const options: RequestOptions = { method, headers, agent: this.#agent };
    if (signal !== undefined) options.signal = signal;
    const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = open(url, options, resolve);
      outgoing.setTimeout(silentMs, () => outgoing.destroy(new Error(`nothing came for ${silentMs} ms`)));
      outgoing.on('error', (error) => reject(this.#asFailure(error)));
      outgoing.end(text);
    });
  }

  #asFailure(error: unknown): unknown {
    // An attempt on several addresses fails with an AggregateError. Errors of other classes are not the network's.
    const isOfNetwork = error instanceof Error && [Error, AggregateError].some((kind) => error.constructor === kind);
    return isOfNetwork || (error as Error).name === 'AbortError' ? unreachable(this.#access.server, error) : error;
  }

  async #currentToken(): Promise<string | null> {
    const { readToken } = this.#access;
    if (readToken === null) return null;
    if (this.#token === null || performance.now() - this.#token.readAt > tokenMs) {
      this.#token = { text: await readToken(), readAt: performance.now() };
    }
    return this.#token.text;
  }
}

function secureAgent({ authority, certificate, serverName }: ClusterAccess): HttpsAgent {
  return new HttpsAgent({
    keepAlive: true,
    ...(authority === null ? {} : { ca: authority }),
    ...(certificate === null ? {} : certificate),
    ...(serverName === null ? {} : { servername: serverName }),
  });
}

function parseReply({ statusCode = 0, headers }: IncomingMessage, text: string): unknown {
  const isJson = headers['content-type']?.startsWith('application/json') === true;
  const body: unknown = isJson ? JSON.parse(text) : text;
  if (statusCode < 200 || statusCode > 299) throw errorOf(statusCode, body, headers['retry-after']);
  return body;
}

/** Not `node:readline`, for which U+2028 ends a line, too: JSON may hold it as it is. What breaks off is no line. */
async function* linesOf(reply: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of reply.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield line;
  }
}
