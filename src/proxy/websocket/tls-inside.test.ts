/** The serverless driver with TLS inside its WebSocket, as it is set up for a network that others can read. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Duplex, PassThrough } from 'node:stream';
import { connect as startTls } from 'node:tls';
import { Client } from '@neondatabase/serverless';
import * as subtls from 'subtls';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createWebSocketStream, WebSocket } from 'ws';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies } from '../../../test/helpers/proxy.ts';
import { MessageStream } from '../protocol/message-stream.ts';
import { startupMessage } from '../protocol/messages.ts';
import { cstring, encodeMessage, int32 } from '../protocol/wire.ts';

const proxies = new PostgresProxies();
beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

it.each([false, true])('works, with the TLS hello sent ahead: %s', async (pipelineTLS) => {
  const socketPath = join(proxies.directory, `tls-${pipelineTLS}`);
  await proxies.start({}, { siblings: { number: 0, sockets: [socketPath] } });
  class SocketOfProxy extends WebSocket {
    constructor() {
      super(`ws+unix://${socketPath}:/v2`);
    }
  }
  const { user, password, database } = proxies.role;
  const client = new Client(`postgresql://${user}:${password}@ep-a.local.localhost/${database}?sslmode=verify-full`);
  client.on('error', () => {});
  Object.assign(client.neonConfig, {
    webSocketConstructor: SocketOfProxy,
    useSecureWebSocket: false,
    forceDisablePgSSL: false,
    pipelineTLS,
    subtls,
    rootCerts: await readFile(proxies.certificates.caPath, 'utf8'),
  });
  await client.connect();
  const { rows } = await client.query("select repeat('z', 1000000) as text, $1::text as given", ['here']);
  expect(rows).toEqual([{ text: 'z'.repeat(1_000_000), given: 'here' }]);
  await client.end();
});

/** The first bytes of a TLS client. */
async function makeHello(): Promise<Buffer> {
  const written = new PassThrough();
  const client = startTls({ socket: Duplex.from({ writable: written }), servername: 'ep-a.local.localhost' });
  client.on('error', () => {});
  const [hello] = await once(written, 'data');
  client.destroy();
  return hello;
}

it('takes a hello that comes in one piece with the request for TLS', async () => {
  const socketPath = join(proxies.directory, 'tls-piped');
  await proxies.start({}, { siblings: { number: 0, sockets: [socketPath] } });
  const webSocket = new WebSocket(`ws+unix://${socketPath}:/v2`);
  proxies.onCleanup(() => webSocket.terminate());
  const heard: Buffer[] = [];
  webSocket.on('message', (data: Buffer) => heard.push(data));
  await once(webSocket, 'open');
  webSocket.send(Buffer.concat([int32(8), int32(80_877_103), await makeHello()]));
  // Our answer, and a handshake of TLS behind it.
  await eventually(() => expect(Buffer.concat(heard).subarray(0, 3).toString('hex')).toBe('531603'));
});

it('takes requests that are longer than a TLS record', async () => {
  const socketPath = join(proxies.directory, 'tls-long');
  await proxies.start({}, { siblings: { number: 0, sockets: [socketPath] } });
  const webSocket = new WebSocket(`ws+unix://${socketPath}:/v2`);
  proxies.onCleanup(() => webSocket.terminate());
  const stream = createWebSocketStream(webSocket);
  stream.on('error', () => {});
  stream.write(Buffer.concat([int32(8), int32(80_877_103)]));
  expect(String((await once(stream, 'data'))[0])).toBe('S');
  stream.pause();
  const ca = await readFile(proxies.certificates.caPath, 'utf8');
  const secure = startTls({ socket: stream, servername: 'ep-a.local.localhost', ca });
  secure.on('error', () => {});
  const messages = new MessageStream(secure, 10_000_000);
  const { user, password, database } = proxies.role;
  messages.write(startupMessage(Object.entries({ user, database })));
  messages.write(encodeMessage('p', cstring(password)));
  messages.write(encodeMessage('Q', cstring(`select length('${'x'.repeat(5_000_000)}')`)));
  let row = '';
  while (row === '') {
    const { type, body } = await messages.readMessage();
    if (type === 'D') row = body.subarray(6).toString();
  }
  expect(row).toBe('5000000');
});
