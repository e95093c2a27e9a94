/**
 * Plain connections for the driver, which gives statements to a connection until its socket has closed, and fails those
 * that it has when the socket reports an error. The system reports the two one after the other, and a statement that is
 * given in between waits for ever. Here they come together.
 */
import { Socket } from 'node:net';

/**
 * From this length on the driver sends a message at once. It keeps a shorter one for the next turn of the loop, and
 * nothing is sent on that connection ever again if its socket breaks before: not even the greeting of the next socket.
 * A greeting of this length takes what was left with it; the server ends that connection, and the next one works.
 */
export const sentAtOnce = 1_024;

export interface SocketTarget {
  readonly path?: string | undefined;
  readonly host: readonly string[];
  readonly port: readonly number[];
}

class SteadySocket extends Socket {
  #isClosed = false;

  override emit(event: string | symbol, ...words: unknown[]): boolean {
    if (event === 'close') {
      if (this.#isClosed) return false;
      this.#isClosed = true;
    }
    // The driver listens no more to what has closed.
    if (event === 'error' && this.#isClosed) return false;
    const wasHeard = super.emit(event, ...words);
    if (event === 'error') this.emit('close', true);
    return wasHeard;
  }
}

/** Not connected yet: what is written before is sent when it is. */
export function openSocket({ path, host: [host = 'localhost'], port: [port = 5432] }: SocketTarget): Socket {
  const socket = new SteadySocket();
  // The driver listens a moment after this has returned, and on Bun a path that is not there fails before.
  queueMicrotask(() => (path ? socket.connect(path) : socket.connect(port, host)));
  return socket;
}
