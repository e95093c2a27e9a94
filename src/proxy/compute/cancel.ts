/**
 * Cancel keys. Each session gets a random key of the proxy's own, so that a client learns nothing about the compute's
 * processes, and a cancel request reaches only the backend that its key was issued for. The key contains the number of
 * the proxy that issued it, since the request may arrive at another one.
 */
import { randomInt, timingSafeEqual } from 'node:crypto';
import type { DialAddress } from '../kit/control-plane.ts';
import { type BackendKey, cancelRequest } from '../protocol/messages.ts';
import { dial, startDeadline } from './dial.ts';
import { passCancelOn, type Siblings } from './siblings.ts';

export interface CancelTarget {
  readonly address: DialAddress;
  readonly key: BackendKey;
}

/** What a client can cancel: the backend of a direct session, or the current query of a pooled client. */
export interface Cancellable {
  cancel(): Promise<void>;
}

export interface CancelKeys {
  /** The key stays valid until `revoke`. */
  issue(cancellable: Cancellable): { readonly key: BackendKey; revoke(): void };
  /** What this proxy issued the key for. */
  findOwn(key: BackendKey): Cancellable | undefined;
  /** The same; for a key of another proxy, something that passes the request on to that proxy. */
  find(key: BackendKey): Cancellable | undefined;
}

interface Issued {
  readonly secret: number;
  readonly cancellable: Cancellable;
}

/** How many proxies a key can distinguish. */
const proxiesMax = 16;

export function createCancelKeys(siblings: Siblings = { number: 0, sockets: [] }, passOnMs = 0): CancelKeys {
  // By the half of a key that drivers print; the other half is compared in constant time.
  const issued = new Map<number, Issued>();
  const findOwn = (key: BackendKey) => {
    const found = issued.get(key.processId);
    return found && isSameSecret(found.secret, key.secret) ? found.cancellable : undefined;
  };
  return {
    issue(cancellable) {
      let processId = randomId(siblings.number);
      while (issued.has(processId)) processId = randomId(siblings.number);
      const secret = randomInt(0, 2 ** 32) | 0;
      issued.set(processId, { secret, cancellable });
      return { key: { processId, secret }, revoke: () => issued.delete(processId) };
    },
    findOwn,
    find(key) {
      const number = key.processId % proxiesMax;
      const socketPath = siblings.sockets[number];
      if (number === siblings.number || socketPath === undefined) return findOwn(key);
      return { cancel: () => passCancelOn(socketPath, key, passOnMs) };
    },
  };
}

/** Resolves when the compute has accepted the request, which it shows by closing, or when the deadline has passed. */
export async function forwardCancel(target: CancelTarget, timeoutMs: number): Promise<void> {
  const deadline = startDeadline(timeoutMs);
  try {
    const socket = await dial(target.address, deadline.signal);
    await new Promise<void>((resolve) => {
      deadline.signal.addEventListener('abort', () => socket.destroy(), { once: true });
      socket.once('close', () => resolve());
      socket.end(cancelRequest(target.key));
      socket.resume();
    });
  } finally {
    deadline.clear();
  }
}

/** Random except for the proxy's number: 59 bits with the secret. Positive, as drivers print it as a process id. */
function randomId(number: number): number {
  return randomInt(1, 2 ** 31 / proxiesMax) * proxiesMax + number;
}

function isSameSecret(one: number, other: number): boolean {
  return timingSafeEqual(Int32Array.of(one), Int32Array.of(other));
}
