/**
 * The way to the proxies: each listens on a unix socket. They take turns, and one that does not accept connections is
 * skipped.
 */
import type { ClientRequest } from 'node:http';
import { CatnapError } from '../../lib/errors.ts';

export interface Proxies {
  /** Resolves with a request that is connected. Nothing has been sent before that, so another proxy may be tried. */
  reachOne(open: (socketPath: string) => ClientRequest): Promise<ClientRequest>;
}

export function createProxies(sockets: readonly string[]): Proxies {
  let turn = 0;
  return {
    reachOne(open) {
      turn = (turn + 1) % Math.max(1, sockets.length);
      return reachFirst([...sockets.slice(turn), ...sockets.slice(0, turn)], open);
    },
  };
}

export function unreachable(cause: Error): CatnapError {
  return new CatnapError('unavailable', 'the proxy does not answer; try again', { cause, retryAfterSeconds: 1 });
}

async function reachFirst(
  sockets: readonly string[],
  open: (socketPath: string) => ClientRequest,
): Promise<ClientRequest> {
  let cause = new Error('there is no proxy');
  for (const socketPath of sockets) {
    const upstream = open(socketPath);
    try {
      await connected(upstream);
      return upstream;
    } catch (thrown) {
      cause = thrown instanceof Error ? thrown : cause;
    }
  }
  throw unreachable(cause);
}

function connected(upstream: ClientRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    upstream.once('error', reject);
    const finish = () => {
      upstream.off('error', reject);
      resolve();
    };
    upstream.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', finish);
      else finish();
    });
  });
}
