/** What the HTTP port passes on to the proxy, and where one request ends there. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fastify } from 'fastify';
import { afterEach, expect, it } from 'vitest';
import { eventually, stays } from '../../../test/helpers/eventually.ts';
import type { App } from '../kit/app-type.ts';
import { createProxies } from '../kit/proxies.ts';
import { sqlRoutes } from './sql.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Started {
  readonly port: number;
  readonly heard: string[];
  /** The connections of the API to the proxy. */
  readonly lines: Socket[];
  /** What the API reports as failures, as its log would. */
  readonly failures: string[];
}

/** An API in front of a proxy that records what it receives, and of others that do not exist. */
async function start(gone: readonly string[] = [], serve?: RequestListener): Promise<Started> {
  const directory = await mkdtemp(join(tmpdir(), 'catnap-pass-'));
  const socket = join(directory, 'sql');
  const heard: string[] = [];
  const lines: Socket[] = [];
  const record: RequestListener = async (request, response) => {
    const body = await text(request);
    heard.push(`${request.method} from ${request.headers['x-catnap-client-address']}: ${body}`);
    response.end('{}');
  };
  const proxy = createServer(serve ?? record).listen(socket);
  proxy.on('connection', (line) => lines.push(line));
  await once(proxy, 'listening');
  const failures: string[] = [];
  const app: App = fastify();
  app.addHook('onError', async (_request, _reply, error) => {
    failures.push(error.message);
  });
  await app.register(async (sql: App) => sqlRoutes(sql, createProxies([...gone, socket])));
  await app.listen({ port: 0, host: '127.0.0.1' });
  cleanups.push(
    () => rm(directory, { recursive: true, force: true }),
    () => proxy.close(),
    () => proxy.closeAllConnections(),
    async () => {
      // A client that was left may have opened one more connection, which Node waits for although nothing was asked.
      const closed = app.close();
      app.server.closeAllConnections();
      await closed;
    },
  );
  return { port: (app.server.address() as AddressInfo).port, heard, lines, failures };
}

const inside = 'POST /sql HTTP/1.1\r\nhost: a\r\nx-catnap-client-address: 10.0.0.1\r\ncontent-length: 0\r\n\r\n';
const chunked = `${inside.length.toString(16)}\r\n${inside}\r\n0\r\n\r\n`;

it.each([
  ['OPTIONS', `transfer-encoding: chunked\r\n\r\n${chunked}`, ''],
  ['OPTIONS', `content-length: ${inside.length}\r\n\r\n${inside}`, ''],
  ['POST', `transfer-encoding: chunked\r\n\r\n${chunked}`, inside],
  ['POST', `content-length: ${inside.length}\r\n\r\n${inside}`, inside],
])('a body of %s never is a request of its own at the proxy (%#)', async (method, rest, body) => {
  const { port, heard } = await start();
  const client = connect(port, '127.0.0.1');
  cleanups.push(() => client.destroy());
  let answered = '';
  client.on('data', (bytes) => {
    answered += bytes;
  });
  client.write(`${method} /sql HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n${rest}`);
  await eventually(() => expect(answered.match(/HTTP\/1.1 200/g)).toHaveLength(1));
  client.write('POST /sql HTTP/1.1\r\nhost: a\r\nx-catnap-client-address: 10.0.0.2\r\ncontent-length: 4\r\n\r\nnext');
  await eventually(() => expect(answered.match(/HTTP\/1.1 200/g)).toHaveLength(2));
  expect(heard).toEqual([`${method} from 127.0.0.1: ${body}`, 'POST from 127.0.0.1: next']);
});

it('goes to a proxy that is there, whichever others are not', async () => {
  const { port, heard } = await start(['/nonexistent/one', '/nonexistent/two']);
  for (let n = 0; n < 6; n++) {
    const reply = await fetch(`http://127.0.0.1:${port}/sql`, { method: 'POST', body: `body ${n}` });
    expect(reply.status).toBe(200);
  }
  expect(heard).toEqual([0, 1, 2, 3, 4, 5].map((n) => `POST from 127.0.0.1: body ${n}`));
});

it('uses its connections again, one for each request at the same time', async () => {
  const { port, lines } = await start();
  const ask = () => fetch(`http://127.0.0.1:${port}/sql`, { method: 'POST', body: 'a' }).then((reply) => reply.text());
  for (let n = 0; n < 5; n++) await ask();
  expect(lines).toHaveLength(1);
  await Promise.all(Array.from({ length: 4 }, ask));
  expect(lines.length).toBeLessThanOrEqual(4);
  // A proxy that has gone is noticed before the next request.
  for (const line of lines) line.destroy();
  await eventually(async () => expect(await ask()).toBe('{}'));
});

const large = 'x'.repeat(3_000_000);

it.each([
  ['a length', large],
  ['no length', new Blob([large])],
])('passes large bodies on and back, with %s', async (_, body) => {
  const { port, lines } = await start([], async (request, response) => response.end(await text(request)));
  const send = body instanceof Blob ? { body: body.stream(), duplex: 'half' as const } : { body };
  for (let n = 0; n < 2; n++) {
    const reply = await fetch(`http://127.0.0.1:${port}/sql`, {
      method: 'POST',
      ...send,
      ...(n > 0 && { body: large }),
    });
    expect(reply.headers.get('content-length')).toBe(String(large.length));
    expect((await reply.text()) === large).toBe(true);
  }
  expect(lines).toHaveLength(1);
});

it('an answer that comes before the end of its request ends the connection, and the caller gets it', async () => {
  const { port, lines } = await start([], (request, response) => {
    const isLong = request.headers['transfer-encoding'] === 'chunked';
    if (isLong) response.writeHead(413, { 'content-length': 8 }).end('too long');
    else request.resume().once('end', () => response.end('fine'));
  });
  const client = connect(port, '127.0.0.1');
  cleanups.push(() => client.destroy());
  let answered = '';
  client.on('data', (bytes) => {
    answered += bytes;
  });
  const head = 'POST /sql HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n';
  client.write(`${head}content-length: ${large.length}\r\n\r\n${large.slice(0, 100_000)}`);
  await eventually(() => expect(answered).toMatch(/ 413 .*too long$/s));
  await eventually(() => expect(lines.map(({ destroyed }) => destroyed)).toEqual([true]));
  client.write(`${large.slice(100_000)}${head}content-length: 1\r\n\r\na`);
  await eventually(() => expect(answered).toMatch(/ 200 .*fine$/s));
});

it('a caller that leaves ends its connection to the proxy, and no other', async () => {
  const { port, lines, failures } = await start([], (request, response) => {
    if (request.url === '/sql?quick') response.end('fine');
  });
  const leave = new AbortController();
  const left = fetch(`http://127.0.0.1:${port}/sql`, { method: 'POST', body: 'a', signal: leave.signal });
  await eventually(() => expect(lines).toHaveLength(1));
  expect((await fetch(`http://127.0.0.1:${port}/sql?quick`, { method: 'POST' })).status).toBe(200);
  leave.abort();
  await expect(left).rejects.toThrow('abort');
  await eventually(() => expect(lines.map(({ destroyed }) => destroyed)).toEqual([true, false]));
  // Somebody has cancelled a query: no operator needs to hear of it.
  await stays(() => expect(failures).toEqual([]), 300);
});

it.each([
  ['nothing', ''],
  ['half an answer', 'HTTP/1.1 200 OK\r\ncontent-len'],
  ['no HTTP', 'hello\r\n\r\n'],
  ['no length', 'HTTP/1.1 200 OK\r\n\r\n{}'],
  ['more than its length', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{}'],
])('a proxy that answers with %s does not answer', async (_, answer) => {
  const { port } = await start([], (request) => request.socket.end(answer));
  const reply = await fetch(`http://127.0.0.1:${port}/sql`, { method: 'POST', body: 'a' });
  expect(reply.status).toBeGreaterThanOrEqual(500);
  expect(await reply.text()).toContain('the proxy does not answer');
});

it('passes a file on while it is written, with its name', async () => {
  let finish = () => {};
  const { port, heard } = await start([], async (request, response) => {
    heard.push(`${request.method} ${request.url}: ${await text(request)}`);
    response.writeHead(200, { 'content-type': 'text/csv', 'content-disposition': 'attachment; filename="rows.csv"' });
    response.write('first');
    finish = () => void response.end(' last');
  });
  const reply = await fetch(`http://127.0.0.1:${port}/sql/export?format=csv`, { method: 'POST', body: 'a' });
  expect(heard).toEqual(['POST /sql/export?format=csv: a']);
  expect(reply.headers.get('content-disposition')).toBe('attachment; filename="rows.csv"');
  const reader = reply.body?.getReader();
  const read = async () => new TextDecoder().decode((await reader?.read())?.value);
  expect(await read()).toBe('first');
  finish();
  expect(await read()).toBe(' last');
});

it('a file that breaks off is not whole for the caller either, and a caller that leaves ends it', async () => {
  const { port, lines } = await start([], (request, response) => {
    response.writeHead(200, { 'content-type': 'text/csv' });
    response.write('first', () => {
      if (request.url === '/sql/export?broken') response.destroy();
    });
  });
  const ask = (search: string, signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${port}/sql/export${search}`, { method: 'POST', body: 'a', ...(signal && { signal }) });
  await expect(ask('?broken').then((reply) => reply.text())).rejects.toThrow();
  const leave = new AbortController();
  expect((await ask('', leave.signal)).status).toBe(200);
  leave.abort();
  await eventually(() => expect(lines.every(({ destroyed }) => destroyed)).toBe(true));
  expect(lines.length).toBe(2);
});
