/**
 * The database port, bound here; the proxies inherit the socket and listen on it. This process never accepts from the
 * socket: it only keeps it open, so that a restarted proxy finds it, and clients that connect before that wait.
 */
import net from 'node:net';

export interface SharedPort {
  readonly fd: number;
  close(): void;
}

/**
 * Null when this Node cannot bind without listening: its cluster module is built on this function, but no document
 * names it. (The module itself would do whatever a child asks for, with our privileges: open any port, any path, any
 * descriptor.)
 */
export function bindSharedPort(host: string, port: number): SharedPort | null {
  const bind: unknown = Reflect.get(net, '_createServerHandle');
  if (typeof bind !== 'function') return null;
  const handle: unknown = bind(host, port, net.isIPv6(host) ? 6 : 4);
  if (typeof handle === 'number') throw new Error(`port ${port} on ${host} cannot be bound (error ${-handle})`);
  if (typeof handle !== 'object' || handle === null || !('fd' in handle) || typeof handle.fd !== 'number') return null;
  const close: unknown = Reflect.get(handle, 'close');
  return { fd: handle.fd, close: () => typeof close === 'function' && void close.call(handle) };
}
