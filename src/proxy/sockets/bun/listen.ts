/** The database port on Bun, and connections that the proxy opens itself. */
import { errorText } from '../../../lib/errors.ts';
import type { DialAddress } from '../../kit/control-plane.ts';
import type { Listener, ListenOptions } from '../../protocol/byte-stream.ts';
import { type BunApi, type BunHandle, type BunListener, bunHandlers } from './api.ts';
import { setBacklog } from './backlog.ts';
import { BunSocket } from './socket.ts';

const dialKeepAliveMs = 0;

export async function listenOnBun(bun: BunApi, options: ListenOptions, backlog: number): Promise<Listener> {
  const { bind, port, portFd, keepAliveMs, connectionsMax, onConnection } = options;
  const sockets = new Set<BunSocket>();
  let onAllClosed: (() => void) | null = null;

  const open = (handle: BunHandle) => {
    if (sockets.size >= connectionsMax) return handle.close();
    const socket = new BunSocket();
    handle.data = socket;
    socket.handleOpen(handle);
    handle.setNoDelay(true);
    handle.setKeepAlive(true, keepAliveMs);
    sockets.add(socket);
    socket.on('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) onAllClosed?.();
    });
    onConnection(socket, socket.address);
  };

  const target = portFd == null ? { hostname: bind, port, exclusive: true } : { fd: portFd };
  const listener = listenOr(bun, { ...target, allowHalfOpen: true, socket: { ...bunHandlers, open } });
  setBacklog(listener, backlog);
  const name: { port?: number } = {};
  listener.getsockname(name);
  return {
    port: name.port ?? 0,
    close: () =>
      new Promise((resolve) => {
        listener.stop();
        onAllClosed = resolve;
        if (sockets.size === 0) resolve();
      }),
  };
}

/** Bun's own message does not say why it failed. */
function listenOr(bun: BunApi, options: Parameters<BunApi['listen']>[0]): BunListener {
  try {
    return bun.listen(options);
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? `${thrown.code}: ` : '';
    throw new Error(`${code}${errorText(thrown)}`, { cause: thrown });
  }
}

/** 'connect' follows, or 'error'. */
export function connectOnBun(bun: BunApi, address: DialAddress): BunSocket {
  const socket = new BunSocket();
  const isUnix = address.kind === 'unix';
  const target = isUnix ? { unix: address.path } : { hostname: address.host, port: address.port };
  socket.once('connect', (handle: BunHandle) => {
    if (isUnix) return;
    handle.setNoDelay(true);
    handle.setKeepAlive(true, dialKeepAliveMs);
  });
  // `connectError` has been called with the same error.
  bun.connect({ ...target, allowHalfOpen: true, data: socket, socket: bunHandlers }).catch(() => {});
  return socket;
}
