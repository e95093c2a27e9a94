/**
 * Cancel keys. Each session gets a random key of the proxy's own, so that a client learns nothing about the compute's
 * processes, and a cancel request reaches the one backend that its key was issued for. The key holds the number of
 * the proxy that issued it, since the request may come to another one.
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

/** Whatever a client can cancel: a direct session's backend, or what a pooled client has running at the moment. */
export interface Cancellable {
  cancel(): Promise<void>;
}

export interface CancelKeys {
  /** The key stays valid until `revoke`. */
  issue(cancellable: Cancellable): { readonly key: BackendKey; revoke(): void };
  /** What the key was issued for here. */
  findOwn(key: BackendKey): Cancellable | undefined;
  /** The same, or what passes the request on to the proxy that issued the key. */
  find(key: BackendKey): Cancellable | undefined;
}

interface Issued {
  readonly secret: number;
  readonly cancellable: Cancellable;
}

/** Numbers of proxies that a key has room for. */
const numbers = 16;

export function createCancelKeys(siblings: Siblings = { number: 0, sockets: [] }, passOnMs = 0): CancelKeys {
  // By the half of a key that drivers print; the other half is compared without telling how much of it was right.
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
      const number = key.processId % numbers;
      const socketPath = siblings.sockets[number];
      if (number === siblings.number || socketPath === undefined) return findOwn(key);
      return { cancel: () => passCancelOn(socketPath, key, passOnMs) };
    },
  };
}

/** Resolves when the compute has taken the request (it answers by closing) or the deadline has passed. */
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

/** Random but for the proxy's number; with the secret, 59 bits. Drivers print it as a process id: it stays positive. */
function randomId(number: number): number {
  return randomInt(1, 2 ** 31 / numbers) * numbers + number;
}

function isSameSecret(one: number, other: number): boolean {
  return timingSafeEqual(Int32Array.of(one), Int32Array.of(other));
}
