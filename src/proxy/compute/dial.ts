/** Opens a socket to a compute, and the deadline for it. */
import type { DialAddress } from '../kit/control-plane.ts';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { connect } from '../sockets/connect.ts';

/** Where an address leads, in one text: two addresses with the same text are one socket. */
export const socketNameOf = (address: DialAddress) =>
  address.kind === 'unix' ? address.path : `${address.host}:${address.port}`;

/** Rejects with the system error of the connect, or the signal's reason. */
export function dial(address: DialAddress, signal: AbortSignal): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const socket = connect(address);
    const removeListeners = () => {
      signal.removeEventListener('abort', onAbort);
      socket.off('connect', onConnect);
      socket.off('error', onError);
    };
    const onConnect = () => {
      removeListeners();
      resolve(socket);
    };
    const onError = (error: Error) => {
      removeListeners();
      socket.destroy();
      reject(error);
    };
    const onAbort = () => onError(signal.reason);
    // Stays for the life of the socket: an error between two owners would end the process.
    socket.on('error', () => {});
    socket.on('connect', onConnect);
    socket.on('error', onError);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** Within a network a connection is there at once, or whoever had the address is gone. */
const reachMs = 3_000;

/** As `dial`. What does not answer at all is given up soon: over a network that takes minutes otherwise. */
export async function dialSoon(address: DialAddress, deadline: Deadline): Promise<ByteStream> {
  if (address.kind === 'unix') return dial(address, deadline.signal);
  const reaching = startDeadline(reachMs, deadline.signal);
  try {
    return await dial(address, reaching.signal);
  } finally {
    reaching.clear();
  }
}

export interface Deadline {
  /** Aborts at the deadline, or with the outer signal. */
  readonly signal: AbortSignal;
  clear(): void;
}

/** AbortSignal.timeout would keep its timer after success; at a thousand logins a second that adds up. */
export function startDeadline(ms: number, outer?: AbortSignal): Deadline {
  const controller = new AbortController();
  const onOuter = () => controller.abort(outer?.reason);
  const timer = setTimeout(() => controller.abort(new Error(`no answer within ${ms} ms`)), ms);
  outer?.addEventListener('abort', onOuter, { once: true });
  if (outer?.aborted) onOuter();
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      outer?.removeEventListener('abort', onOuter);
    },
  };
}
