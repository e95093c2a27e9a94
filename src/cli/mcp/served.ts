/**
 * The MCP server as the API process serves it at `/mcp`: streamable HTTP without sessions, so that each message stands
 * for itself, brings its key, gets the tools of that key, and may go to any of several API processes. It is built as
 * one file of its own, which that process loads with the first message.
 */

import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ApiRefusal, createClient, type Fetch } from '../kit/client.ts';
import type { GetAuthDetailsReply } from '../kit/generated.ts';
import type { AccessLevel } from './access.ts';
import { createMcpServer } from './server.ts';

export interface Message {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string;
  readonly access: AccessLevel;
  readonly project: string | undefined;
  readonly version: string;
  readonly fetch: Fetch;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A name that `fetch` never looks up. */
const origin = 'http://catnap';

export async function answerMessage({ body, headers, key: secret, fetch, ...options }: Message): Promise<Answer> {
  const client = createClient({ url: origin, apiKey: async () => secret, fetch });
  const key = await client.get<GetAuthDetailsReply>('/auth').catch(asRefusal);
  if (key instanceof ApiRefusal) return refusalOf(key);
  const server = createMcpServer(client, { ...options, key });
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  try {
    // The SDK's own types disagree about fields that may be undefined.
    await server.connect(transport as Transport);
    const request = new Request(`${origin}/mcp`, { method: 'POST', headers });
    const reply = await transport.handleRequest(request, { parsedBody: body });
    return { status: reply.status, headers: Object.fromEntries(reply.headers), body: await reply.text() };
  } finally {
    await server.close();
  }
}

/** Such as too many requests with this key. */
function asRefusal(error: unknown): ApiRefusal {
  if (error instanceof ApiRefusal) return error;
  throw error;
}

function refusalOf({ status, message }: ApiRefusal): Answer {
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null });
  return { status, headers: { 'content-type': 'application/json' }, body };
}
