/**
 * Connections for the Postgres driver, which gives statements to a connection until its socket has closed, and fails
 * those that it has when the socket reports an error. The system reports the two one after the other, and a statement
 * that is given in between waits for ever. Here they come together. A server that closes before a login is through
 * reports no error, and the driver would connect again at once, without end: here every end is one.
 */
import { once } from 'node:events';
import { Socket } from 'node:net';
import { encrypt, type TlsMode } from './client-tls.ts';

/**
 * From this length on the driver sends a message at once. It keeps a shorter one for the next turn of the loop, and
 * nothing is sent on that connection ever again if its socket breaks before: not even the greeting of the next socket.
 * A greeting of this length takes what was left with it; the server ends that connection, and the next one works.
 */
export const sentAtOnce = 1_024;

export interface Host {
  readonly host: string;
  readonly port: number;
}

export interface SteadyOptions {
  readonly tls?: TlsMode;
  /** Tried one after the other, where there are several: the driver would lose statements between two of them. */
  readonly hosts?: readonly Host[];
}

const openWithinMs = 10_000;

/** For the driver's options. Its own TLS would put a socket of another kind in the place of the one that it gets. */
export function steady({ tls = 'disable', hosts = [] }: SteadyOptions = {}) {
  const [first] = hosts;
  let turns = 0;
  const open = ({ path, host: [host = 'localhost'], port: [port = 5432] }: Target): Socket | Promise<Socket> => {
    if (path) return openPlain({ path });
    if (tls === 'disable' && hosts.length === 0) return openPlain({ host, port });
    const all = hosts.length === 0 ? [{ host, port }] : hosts;
    const turn = turns++ % all.length;
    return openOneOf([...all.slice(turn), ...all.slice(0, turn)], tls);
  };
  return { ssl: false, socket: open, ...first } as const;
}

/** As the driver has read them from its options. */
interface Target {
  readonly path?: string | undefined;
  readonly host: readonly string[];
  readonly port: readonly number[];
}

/** Not connected yet: what is written before is sent when it is. */
function openPlain(to: Host | { readonly path: string }): Socket {
  const socket = errorWithClose(new Socket());
  // The driver listens a moment after this has returned, and on Bun a path that is not there fails before.
  queueMicrotask(() => socket.connect(to));
  return socket;
}

/** The driver takes no promise that fails for an answer: what it gets then is a socket that fails. */
async function openOneOf(hosts: readonly Host[], tls: TlsMode): Promise<Socket> {
  let lastError = new Error('BUG: there is no host to connect to');
  for (const host of hosts) {
    try {
      return errorWithClose(await openReady(host, tls));
    } catch (error) {
      lastError = error as Error;
    }
  }
  const failed = errorWithClose(new Socket());
  failed._write = (_chunk, _encoding, done) => done(lastError);
  return failed;
}

async function openReady(to: Host, tls: TlsMode): Promise<Socket> {
  const socket = new Socket();
  const impatience = setTimeout(() => socket.destroy(new Error('the server does not answer')), openWithinMs);
  try {
    await once(socket.connect(to), 'connect');
    const ready = await encrypt(socket, to.host, tls);
    return ready.resume();
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(impatience);
  }
}

/** With the driver's own name for it. */
const connectionClosed = () =>
  Object.assign(new Error('the server closed the connection'), { code: 'CONNECTION_CLOSED' });

function errorWithClose(socket: Socket): Socket {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...words: unknown[]) => boolean;
  let hasFailed = false;
  let isClosed = false;
  const steadyEmit = (event: string | symbol, ...words: unknown[]): boolean => {
    if (event === 'close') {
      if (isClosed) return false;
      isClosed = true;
      // To those who listen: without any, it would end the process.
      if (!hasFailed && socket.listenerCount('error') > 0) emit('error', connectionClosed());
    }
    // The driver listens no more to what has closed.
    if (event === 'error' && isClosed) return false;
    if (event === 'error') hasFailed = true;
    const wasHeard = emit(event, ...words);
    if (event === 'error') steadyEmit('close', true);
    return wasHeard;
  };
  return Object.assign(socket, { emit: steadyEmit });
}
