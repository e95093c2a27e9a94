/** A request to a proxy over a connection of its own, for what takes long: WebSockets, and files. */
import type { ClientRequest } from 'node:http';

/** Nothing of the request has been sent when this resolves. */
export function connected(upstream: ClientRequest): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    upstream.once('error', reject);
    upstream.once('socket', (socket) => {
      socket.once('connect', () => {
        upstream.off('error', reject);
        resolve(upstream);
      });
    });
  });
}
