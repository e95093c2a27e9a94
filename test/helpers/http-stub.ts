/** A tiny HTTP server with canned replies, for tests of clients; it remembers what it was asked. */
import { once } from 'node:events';
import { createServer } from 'node:http';

export interface StubRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** A reply, with status 200 unless it says otherwise; `never` is not answered at all. */
export type StubReply = { readonly status?: number; readonly body: unknown } | 'never';

export interface HttpStub {
  readonly url: string;
  readonly requests: readonly StubRequest[];
  close(): Promise<void>;
}

export async function startHttpStub(answer: (request: StubRequest) => StubReply | undefined): Promise<HttpStub> {
  const requests: StubRequest[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const isForm = incoming.headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
    const request = {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      authorization: incoming.headers.authorization,
      body: text === '' ? undefined : isForm ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text),
    };
    requests.push(request);
    const reply = answer(request) ?? { status: 404, body: { code: '', message: 'not found' } };
    if (reply === 'never') return;
    const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
    outgoing.writeHead(reply.status ?? 200, { 'content-type': 'application/json', connection: 'close' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
