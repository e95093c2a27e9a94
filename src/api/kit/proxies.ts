/**
 * The way to the proxies: each listens on a unix socket. They take turns, and one that does not accept connections is
 * skipped.
 */
import { CatnapError } from '../../lib/errors.ts';

export interface Proxies {
  /** `connect` sends nothing yet, so that another proxy may be tried when it rejects. */
  reachOne<T>(connect: (socketPath: string) => Promise<T>): Promise<T>;
}

export function createProxies(sockets: readonly string[]): Proxies {
  let turn = 0;
  return {
    async reachOne(connect) {
      turn = (turn + 1) % Math.max(1, sockets.length);
      let cause = new Error('there is no proxy');
      for (const socketPath of [...sockets.slice(turn), ...sockets.slice(0, turn)]) {
        try {
          return await connect(socketPath);
        } catch (thrown) {
          cause = thrown instanceof Error ? thrown : cause;
        }
      }
      throw unreachable(cause);
    },
  };
}

export function unreachable(cause: Error): CatnapError {
  return new CatnapError('unavailable', 'the proxy does not answer; try again', { cause, retryAfterSeconds: 1 });
}
