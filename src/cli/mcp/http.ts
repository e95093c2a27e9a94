/**
 * The MCP server as streamable HTTP, at `/mcp`. It keeps no sessions: each request brings its own key, and gets the
 * tools of that key. Whoever has no key that Catnap takes learns nothing, not even which tools there are.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type ApiClient, ApiRefusal } from '../kit/client.ts';
import { CliFailure } from '../kit/failure.ts';
import type { GetAuthDetailsReply } from '../kit/generated.ts';
import type { KeyFacts } from './key.ts';
import { createMcpServer } from './server.ts';
import type { McpOptions } from './toolbox.ts';

export const mcpPath = '/mcp';

export interface HttpOptions extends Omit<McpOptions, 'key'> {
  readonly host: string;
  readonly port: number;
  /** The API as somebody with this key sees it. */
  readonly clientFor: (key: string) => ApiClient;
}

/** Resolves once it listens. */
export function listenForMcp(options: HttpOptions): Promise<Server> {
  const server = createServer((request, response) => {
    handle(request, response, options).catch(() => refuse(response, 500, 'internal error'));
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new CliFailure(`${options.host}:${options.port} cannot be listened on (${error.code})`)),
    );
    server.listen(options.port, options.host, () => resolve(server));
  });
}

async function handle(request: IncomingMessage, response: ServerResponse, options: HttpOptions): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname !== mcpPath) return refuse(response, 404, `there is nothing here but ${mcpPath}`);
  // Streams that a server begins, and sessions that a client ends, are parts of a server with sessions.
  if (request.method !== 'POST') return refuse(response, 405, 'POST is the only method here', { allow: 'POST' });
  const [, key] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (key === undefined) return refuse(response, 401, 'send an API key: authorization: Bearer …', challenge);
  const client = options.clientFor(key);
  const found = await keyOrProblem(client);
  if ('status' in found) return refuse(response, found.status, found.message, challenge);
  const server = createMcpServer(client, { ...options, key: found });
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  response.once('close', () => void server.close());
  // The SDK's own types disagree about fields that may be undefined.
  await server.connect(transport as Transport);
  await transport.handleRequest(request, response);
}

const challenge = { 'www-authenticate': 'Bearer' };

async function keyOrProblem(
  client: ApiClient,
): Promise<KeyFacts | { readonly status: number; readonly message: string }> {
  try {
    return await client.get<GetAuthDetailsReply>('/auth');
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    const isRefused = error instanceof ApiRefusal && error.status === 401;
    return isRefused ? { status: 401, message: 'the API key was refused' } : { status: 502, message: error.message };
  }
}

function refuse(response: ServerResponse, status: number, message: string, headers: Record<string, string> = {}): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null });
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}
