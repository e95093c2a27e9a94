/** How the HTTP port passes WebSockets on to a proxy, and what it does with every other upgrade. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fastify } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { eventually } from '../../../test/helpers/eventually.ts';
import type { App } from '../kit/app-type.ts';
import { createProxies } from '../kit/proxies.ts';
import { answerOnSocket, sendError } from '../plugins/errors.ts';
import { webSocketRoutes } from './websocket.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Started {
  readonly app: App;
  readonly port: number;
  /** What the proxy was asked. */
  readonly heard: string[];
  readonly atProxy: WebSocket[];
}

/** An API in front of a proxy that echoes, and of others that do not exist. */
async function start(gone: readonly string[] = []): Promise<Started> {
  const directory = await mkdtemp(join(tmpdir(), 'catnap-tunnel-'));
  const socketPath = join(directory, 'proxy');
  const heard: string[] = [];
  const atProxy: WebSocket[] = [];
  const echo = new WebSocketServer({ noServer: true });
  const proxy = createServer().listen(socketPath);
  proxy.on('upgrade', (request, socket, head) => {
    const { host, origin, cookie } = request.headers;
    heard.push([request.url, host, request.headers['x-catnap-client-address'], origin, cookie].join(' '));
    if (request.url?.endsWith('refused')) return answerOnSocket(socket, 426, 'not this one');
    echo.handleUpgrade(request, socket, head, (client) => {
      atProxy.push(client);
      client.on('message', (data) => client.send(data));
    });
  });
  await once(proxy, 'listening');
  const app: App = fastify();
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
  app.post('/hello', (request) => ({ body: request.body, upgrade: request.headers.upgrade ?? null }));
  webSocketRoutes(app, createProxies([...gone, socketPath]));
  await app.listen({ port: 0, host: '127.0.0.1' });
  cleanups.push(
    () => rm(directory, { recursive: true, force: true }),
    () => proxy.close(),
    () => atProxy.map((client) => client.terminate()),
    () => app.close(),
  );
  return { app, port: (app.server.address() as AddressInfo).port, heard, atProxy };
}

async function open({ port }: Started, path = '/v2'): Promise<WebSocket> {
  const client = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
    headers: { 'x-catnap-client-address': '10.0.0.1', cookie: 'a=b', host: 'ep-a.local.localhost:7070' },
    origin: 'https://elsewhere.test',
  });
  cleanups.push(() => client.terminate());
  await once(client, 'open');
  return client;
}

/** A connection on which the given text is sent. */
function send({ port }: Started, text: string): { socket: Socket; answer: () => string } {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  cleanups.push(() => socket.destroy());
  let answer = '';
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    answer += bytes;
  });
  socket.write(text);
  return { socket, answer: () => answer };
}

describe('a WebSocket', () => {
  it('goes to a proxy with the host, the address and the client, and with nothing that the client made up', async () => {
    const started = await start(['/nonexistent/one']);
    for (const path of ['/v2', '/v2/', '/v2?address=ep-b%3A5432&more=1']) {
      const client = await open(started, path);
      client.send('hello');
      expect(String((await once(client, 'message'))[0])).toBe('hello');
    }
    expect(started.heard).toEqual([
      '/v2 ep-a.local.localhost:7070 127.0.0.1  ',
      '/v2 ep-a.local.localhost:7070 127.0.0.1  ',
      '/v2?address=ep-b%3A5432 ep-a.local.localhost:7070 127.0.0.1  ',
    ]);
  });

  it('closes on either side with the other, politely or not', async () => {
    const started = await start();
    const polite = await open(started);
    started.atProxy[0]?.close(3001);
    expect((await once(polite, 'close'))[0]).toBe(3001);
    const cut = await open(started);
    started.atProxy[1]?.terminate();
    expect((await once(cut, 'close'))[0]).toBe(1006);
    const leaving = await open(started);
    leaving.terminate();
    await eventually(() => expect(started.atProxy[2]?.readyState).toBe(WebSocket.CLOSED));
  });

  it('does not make the API keep what the client does not read', async () => {
    const started = await start();
    const client = await open(started);
    client.pause();
    const proxy = started.atProxy[0];
    for (let n = 0; n < 500; n++) proxy?.send(Buffer.alloc(65_536));
    await eventually(() => expect(proxy?.bufferedAmount).toBeGreaterThan(10_000_000));
    let bytes = 0;
    client.on('message', (data: Buffer) => {
      bytes += data.length;
    });
    client.resume();
    await eventually(() => expect(bytes).toBe(500 * 65_536));
  });

  it('does not keep the API from stopping', async () => {
    const started = await start();
    const client = await open(started);
    const closed = once(client, 'close');
    await started.app.close();
    await closed;
    expect(started.app.server.listening).toBe(false);
  });

  it('is answered with the proxy’s refusal, and with 503 while there is no proxy', async () => {
    const started = await start();
    const asked = (path: string) =>
      `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`;
    const refused = send(started, asked('/v2?address=refused'));
    await eventually(() => expect(refused.socket.readableEnded).toBe(true));
    expect(refused.answer()).toMatch(/^HTTP\/1.1 426 .*sec-websocket-version: 13.*"not this one"}$/s);
    const app: App = fastify();
    cleanups.push(() => app.close());
    webSocketRoutes(app, createProxies(['/nonexistent/one']));
    await app.listen({ port: 0, host: '127.0.0.1' });
    const gone = send({ ...started, port: (app.server.address() as AddressInfo).port }, asked('/v2'));
    await eventually(() => expect(gone.socket.readableEnded).toBe(true));
    expect(gone.answer()).toMatch(/^HTTP\/1.1 503 .*retry-after: 1.*the proxy does not answer; try again"}$/s);
  });
});

describe('what is no WebSocket', () => {
  it('is told so at its path', async () => {
    const { port } = await start();
    const reply = await fetch(`http://127.0.0.1:${port}/v2`);
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ message: expect.stringContaining('Upgrade: websocket') });
  });

  it('is served without the upgrade that it asks for, and the connection goes on', async () => {
    const started = await start();
    const upgrade = 'connection: Upgrade, HTTP2-Settings, keep-alive\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n';
    const request = (body: string) =>
      `POST /hello HTTP/1.1\r\nhost: a\r\n${upgrade}content-type: application/json\r\n` +
      `content-length: ${body.length}\r\n\r\n${body}`;
    const { socket, answer } = send(started, request('{"a":1}'));
    await eventually(() => expect(answer()).toContain('{"body":{"a":1},"upgrade":null}'));
    socket.write(request('{"b":2}'));
    await eventually(() => expect(answer()).toContain('{"body":{"b":2},"upgrade":null}'));
    expect(answer().match(/HTTP\/1.1 200/g)).toHaveLength(2);
  });

  it('is a path that is not found, if the WebSocket is asked for elsewhere', async () => {
    const started = await start();
    const client = new WebSocket(`ws://127.0.0.1:${started.port}/elsewhere`);
    const [error] = await once(client, 'error');
    expect(error).toMatchObject({ message: 'Unexpected server response: 404' });
    expect(started.heard).toEqual([]);
  });
});
