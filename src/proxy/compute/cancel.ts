/**
 * Cancel keys. A direct session's key has the real process id of its backend, which drivers compare with
 * `pg_backend_pid()` and with the sender of a notification; a pooled client has no backend of its own, and its key has
 * a random one. The secret is the proxy's own in both cases, so that a cancel request reaches only what its key was
 * issued for. It contains the number of the proxy that issued it, since the request may arrive at another one.
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
  /** The key stays valid until `revoke`. Without a process id it gets a random one. */
  issue(cancellable: Cancellable, processId?: number): { readonly key: BackendKey; revoke(): void };
  /** What this proxy issued the key for. */
  findOwn(key: BackendKey): Cancellable | undefined;
  /** The same; for a key of another proxy, something that passes the request on to that proxy or to all Catnaps. */
  find(key: BackendKey): Cancellable | undefined;
}

interface Issued {
  readonly secret: number;
  readonly cancellable: Cancellable;
}

/** `passOnElsewhere` is for keys that no proxy of this Catnap has given out. */
export function createCancelKeys(
  siblings: Siblings = { number: 0, sockets: [] },
  passOnMs = 0,
  passOnElsewhere: ((key: BackendKey) => Promise<void>) | null = null,
): CancelKeys {
  const proxies = Math.max(1, siblings.sockets.length);
  // By the half of a key that drivers print. Backends of different computes may have the same process id.
  const issued = new Map<number, Issued[]>();

  const findOwn = (key: BackendKey) => {
    let found: Cancellable | undefined;
    // Every secret is compared, in constant time.
    for (const { secret, cancellable } of issued.get(key.processId) ?? []) {
      if (isSameSecret(secret, key.secret)) found = cancellable;
    }
    return found;
  };
  const randomSecret = () => (randomInt(0, Math.floor(2 ** 32 / proxies)) * proxies + siblings.number) | 0;

  return {
    issue(cancellable, processId = randomInt(1, 2 ** 31)) {
      const others = issued.get(processId) ?? [];
      let secret = randomSecret();
      while (others.some((other) => other.secret === secret)) secret = randomSecret();
      const own = { secret, cancellable };
      issued.set(processId, [...others, own]);
      const revoke = () => {
        const left = (issued.get(processId) ?? []).filter((each) => each !== own);
        if (left.length > 0) issued.set(processId, left);
        else issued.delete(processId);
      };
      return { key: { processId, secret }, revoke };
    },
    findOwn,
    find(key) {
      const number = (key.secret >>> 0) % proxies;
      const socketPath = siblings.sockets[number];
      if (number === siblings.number || socketPath === undefined) {
        return findOwn(key) ?? (passOnElsewhere === null ? undefined : { cancel: () => passOnElsewhere(key) });
      }
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

function isSameSecret(one: number, other: number): boolean {
  return timingSafeEqual(Int32Array.of(one), Int32Array.of(other));
}
