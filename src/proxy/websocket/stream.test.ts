/** The stream and the handshake before it: a client that nobody here wrote, and bytes that it would not send. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { eventually, stays } from '../../../test/helpers/eventually.ts';
import { type OpenWebSocket, openWebSocket } from './open.ts';
import type { WebSocketStream } from './stream.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Served {
  readonly port: number;
  readonly opened: OpenWebSocket[];
  /** The sockets below them. */
  readonly sockets: Duplex[];
}

async function serve(pingMs = 60_000): Promise<Served> {
  const opened: OpenWebSocket[] = [];
  const sockets: Duplex[] = [];
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    sockets.push(socket);
    const webSocket = openWebSocket(request, socket, head, pingMs);
    if (webSocket !== null) opened.push(webSocket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => opened.map(({ stream }) => stream.destroy()),
  );
  return { port: (server.address() as AddressInfo).port, opened, sockets };
}

async function open(served: Served): Promise<{ client: WebSocket; stream: WebSocketStream }> {
  const client = new WebSocket(`ws://127.0.0.1:${served.port}/v2`);
  client.on('error', () => {});
  cleanups.push(() => client.terminate());
  await once(client, 'open');
  const stream = served.opened.at(-1)?.stream;
  if (stream === undefined) throw new Error('the server has opened nothing');
  stream.on('error', () => {});
  return { client, stream };
}

const key = 'dGhlIHNhbXBsZSBub25jZQ==';
const asked = ['upgrade: websocket', 'connection: Upgrade', `sec-websocket-key: ${key}`, 'sec-websocket-version: 13'];

/** A client that sends what it is told to. */
async function openRaw(
  served: Served,
  path = '/v2',
  headers = asked,
): Promise<{ socket: Socket; heard: () => Buffer }> {
  const socket = connect({ port: served.port, host: '127.0.0.1', allowHalfOpen: true });
  cleanups.push(() => socket.destroy());
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ep-a.local.localhost:7070\r\n${headers.join('\r\n')}\r\n\r\n`);
  await eventually(() => expect(Buffer.concat(chunks).toString('latin1')).toContain('\r\n\r\n'));
  return { socket, heard: () => Buffer.concat(chunks) };
}

describe('the handshake', () => {
  it('answers with the proof of RFC 6455, and reports the names that the client has used', async () => {
    const served = await serve();
    const { heard } = await openRaw(served, '/v2?address=ep-b.local.localhost:5432');
    expect(heard().toString('latin1')).toContain('sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n');
    expect(served.opened[0]?.hostnames).toEqual(['ep-b.local.localhost', 'ep-a.local.localhost']);
  });

  it.each([
    ['the key is missing', asked.filter((line) => !line.includes('-key')), 400, 'Sec-WebSocket-Key'],
    ['the key is too short', asked.map((line) => line.replace(key, 'AAAA')), 400, 'Sec-WebSocket-Key'],
    ['the version is another one', asked.map((line) => line.replace('13', '8')), 426, 'version must be 13'],
    ['the protocol is another one', asked.map((line) => line.replace(': websocket', ': h2c')), 400, 'WebSocket'],
  ])('is refused if %s', async (_why, headers, status, message) => {
    const served = await serve();
    const { socket, heard } = await openRaw(served, '/v2', headers);
    await eventually(() => expect(socket.readableEnded).toBe(true));
    expect(heard().toString()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(heard().toString()).toContain(message);
    expect(served.opened).toEqual([]);
  });
});

describe('WebSocketStream', () => {
  it('carries bytes both ways, of every length that a frame writes differently', async () => {
    const { client, stream } = await open(await serve());
    stream.pipe(stream);
    for (const length of [1, 125, 126, 16_384, 16_385, 65_535, 65_536, 200_000]) {
      const sent = Buffer.alloc(length, length % 251);
      const heard: Buffer[] = [];
      const listen = (data: Buffer, isBinary: boolean) => heard.push(isBinary ? data : Buffer.alloc(0));
      client.on('message', listen);
      client.send(sent.subarray(0, length / 2), { fin: false });
      client.send(sent.subarray(length / 2), { fin: true });
      await eventually(() => expect(Buffer.concat(heard).equals(sent)).toBe(true));
      client.off('message', listen);
    }
  });

  it('answers a ping, and pings an idle client', async () => {
    const served = await serve(5);
    const { client, stream } = await open(served);
    const heard: string[] = [];
    client.on('ping', () => heard.push('ping'));
    client.on('pong', (payload) => heard.push(`pong ${payload}`));
    stream.on('data', () => heard.push('data'));
    client.ping('you');
    await eventually(() => expect([...new Set(heard)].sort()).toEqual(['ping', 'pong you']));
  });

  it('ends when the client closes, and tells it the same code', async () => {
    const { client, stream } = await open(await serve());
    stream.resume();
    stream.on('end', () => stream.end('too late'));
    const heard: unknown[] = [];
    client.on('message', (data) => heard.push(String(data)));
    const closed = once(stream, 'close');
    client.close(3001, 'done');
    expect((await once(client, 'close'))[0]).toBe(3001);
    await closed;
    expect(heard).toEqual([]);
  });

  it('closes with 1000 when its writing side ends, after all that was written', async () => {
    const { client, stream } = await open(await serve());
    stream.resume();
    const heard: number[] = [];
    client.on('message', (data: Buffer) => heard.push(data.length));
    stream.write(Buffer.alloc(100_000));
    stream.end(Buffer.alloc(7));
    expect((await once(client, 'close'))[0]).toBe(1000);
    expect(heard).toEqual([100_000, 7]);
    await eventually(() => expect(stream.closed).toBe(true));
  });

  it('takes an end of the connection for the end of the stream, and can still answer', async () => {
    const served = await serve();
    const { socket, heard } = await openRaw(served);
    const stream = served.opened[0]?.stream;
    stream?.resume();
    stream?.on('end', () => stream.end('answer'));
    socket.end();
    await once(socket, 'close');
    expect(heard().toString('latin1').split('\r\n\r\n')[1]).toBe('\x82\x06answer\x88\x02\x03\xe8');
  });

  it('closes with the client, whatever was under way', async () => {
    const { client, stream } = await open(await serve());
    stream.write(Buffer.alloc(5_000_000));
    const closed = once(stream, 'close');
    client.terminate();
    await closed;
    expect(stream.write('more')).toBe(false);
  });

  it('closes with 1002 for a frame that is not masked', async () => {
    const served = await serve();
    const { socket, heard } = await openRaw(served);
    socket.write(Buffer.from([0x82, 1, 0]));
    await eventually(() => expect(socket.readableEnded).toBe(true));
    expect(heard().subarray(-4).toString('hex')).toBe('880203ea');
    expect(served.opened[0]?.stream.destroyed).toBe(true);
  });

  it('stops reading while nobody takes the data', async () => {
    const { client, stream } = await open(await serve());
    for (let n = 0; n < 400; n++) client.send(Buffer.alloc(65_536));
    const bytes = 400 * 65_536;
    await eventually(() => expect(stream.readableLength).toBeGreaterThan(0));
    await stays(() => {
      expect(stream.readableLength).toBeLessThan(1_000_000);
      expect(client.bufferedAmount).toBeGreaterThan(0);
    }, 100);
    let taken = 0;
    stream.on('data', (chunk: Buffer) => {
      taken += chunk.length;
    });
    await eventually(() => expect(taken).toBe(bytes));
  });

  it('takes no more than it can send, and keeps no pongs for a client that does not read', async () => {
    const served = await serve();
    const { socket } = await openRaw(served);
    socket.pause();
    const stream = served.opened[0]?.stream;
    if (stream === undefined) throw new Error('not open');
    stream.resume();
    let written = 0;
    while (stream.write(Buffer.alloc(65_536))) written += 65_536;
    const held = served.sockets[0]?.writableLength;
    const ping = Buffer.concat([Buffer.from([0x89, 0xfd, 0, 0, 0, 0]), Buffer.alloc(125)]);
    for (let n = 0; n < 1_000; n++) socket.write(ping);
    const pings = 1_000 * ping.length;
    await eventually(() => expect(Reflect.get(served.sockets[0] ?? {}, 'bytesRead')).toBeGreaterThan(pings));
    expect(written).toBeLessThan(50_000_000);
    expect(held).toBeGreaterThan(0);
    expect(served.sockets[0]?.writableLength).toBe(held);
    const drained = once(stream, 'drain');
    socket.resume();
    await drained;
  });
});
