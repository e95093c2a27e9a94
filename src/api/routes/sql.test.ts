/** What the HTTP port passes on to the proxy, and where one request ends there. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fastify } from 'fastify';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import type { App } from '../kit/app-type.ts';
import { createProxies } from '../kit/proxies.ts';
import { sqlRoutes } from './sql.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** An API in front of a proxy that records what it receives, and of others that do not exist. */
async function start(gone: readonly string[] = []): Promise<{ port: number; heard: string[] }> {
  const directory = await mkdtemp(join(tmpdir(), 'catnap-pass-'));
  const socket = join(directory, 'sql');
  const heard: string[] = [];
  const proxy = createServer(async (request, response) => {
    const body = await text(request);
    heard.push(`${request.method} from ${request.headers['x-catnap-client-address']}: ${body}`);
    response.end('{}');
  }).listen(socket);
  await once(proxy, 'listening');
  const app: App = fastify();
  await app.register(async (sql: App) => sqlRoutes(sql, createProxies([...gone, socket])));
  await app.listen({ port: 0, host: '127.0.0.1' });
  cleanups.push(
    () => rm(directory, { recursive: true, force: true }),
    () => proxy.close(),
    () => proxy.closeAllConnections(),
    () => app.close(),
  );
  return { port: (app.server.address() as AddressInfo).port, heard };
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
