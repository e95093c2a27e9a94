/** An HTTP server that stops, under callers that keep their connections. */
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { drainOf } from './drain.ts';

const longMs = 60_000;
let server: Server;
const agent = new Agent({ keepAlive: true });
afterEach(() => {
  agent.destroy();
  server.closeAllConnections();
});

async function serve(handle: (request: IncomingMessage, response: ServerResponse) => void) {
  server = createServer(handle);
  server.keepAliveTimeout = longMs;
  const drain = drainOf(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = () =>
    new Promise<string>((resolve, reject) => {
      const sent = request({ agent, port, host: '127.0.0.1' }, (response) => {
        response.resume();
        response.on('end', () => resolve(`${response.statusCode} ${response.headers.connection}`));
      });
      sent.on('error', reject);
      sent.end();
    });
  return { drain, ask };
}

test('a request over a connection that was idle is answered, and the caller is asked to close', async () => {
  const { drain, ask } = await serve((_, response) => response.end());
  expect(await ask()).toBe('200 keep-alive');
  const finished = drain.finish(longMs);
  expect(await ask()).toBe('200 close');
  await finished;
  await drain.close();
  await expect(ask()).rejects.toThrow('ECONNREFUSED');
});

test('a request under way is waited for', async () => {
  let answer = () => {};
  const { drain, ask } = await serve((_, response) => {
    answer = () => response.end();
  });
  const asked = ask();
  await once(server, 'request');
  let isFinished = false;
  const finished = drain.finish(longMs).then(() => {
    isFinished = true;
  });
  expect(isFinished).toBe(false);
  answer();
  expect(await asked).toBe('200 close');
  await finished;
  await drain.close();
});

test('a request without an end is not waited for longer than is allowed', async () => {
  const { drain, ask } = await serve(() => {});
  const asked = ask().catch(() => 'lost');
  await once(server, 'request');
  await drain.finish(50);
  server.closeAllConnections();
  await drain.close();
  expect(await asked).toBe('lost');
});

test('without connections it is over at once', async () => {
  const { drain } = await serve((_, response) => response.end());
  await drain.finish(longMs);
  await drain.close();
  expect(server.listening).toBe(false);
});
