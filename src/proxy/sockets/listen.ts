/** A TCP port that the proxy accepts connections on, by the runtime that it is on. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Listener, ListenOptions } from '../protocol/byte-stream.ts';
import { bun } from './bun/api.ts';
import { listenOnBun } from './bun/listen.ts';

/** Clients that the kernel keeps for us while we are busy: beyond that it drops them, and they try again in seconds. */
const backlog = 4_096;

/** Rejects with the system error when the port is not available. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const listener = await (bun === null ? listenOnNode(options) : listenOnBun(bun, options, backlog));
  const { bind, port } = options;
  if (port === 0 || listener.port === port) return listener;
  // If the port was taken when the socket was bound, the system has picked another one.
  void listener.close();
  throw new Error(`port ${port} on ${bind} is taken`);
}

async function listenOnNode(options: ListenOptions): Promise<Listener> {
  const { bind, port, portFd, keepAliveMs, connectionsMax, onConnection, onError } = options;
  const server = createServer(
    { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs },
    (stream) => onConnection(stream, stream.remoteAddress ?? ''),
  );
  server.maxConnections = connectionsMax;
  server.listen(portFd == null ? { host: bind, port } : { fd: portFd }, backlog);
  await once(server, 'listening');
  server.on('error', onError);
  return {
    port: portOf(server),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('BUG: the listener has no port');
  return address.port;
}
