/**
 * Cancel keys. Each session gets a random key of the proxy's own, so that a client learns nothing about the compute's
 * processes, and a cancel request reaches the one backend that its key was issued for.
 */
import { randomInt } from 'node:crypto';
import type { DialAddress } from './control-plane.ts';
import { dial, startDeadline } from './dial.ts';
import { type BackendKey, cancelRequest } from './messages.ts';

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
  find(key: BackendKey): Cancellable | undefined;
}

export function createCancelKeys(): CancelKeys {
  const targets = new Map<string, Cancellable>();
  return {
    issue(cancellable) {
      let key = randomKey();
      while (targets.has(keyText(key))) key = randomKey();
      targets.set(keyText(key), cancellable);
      return { key, revoke: () => targets.delete(keyText(key)) };
    },
    find: (key) => targets.get(keyText(key)),
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

/** 63 random bits: the process id is only a number to the client, and some drivers print it, so it stays positive. */
function randomKey(): BackendKey {
  return { processId: randomInt(1, 2 ** 31), secret: randomInt(0, 2 ** 32) | 0 };
}

function keyText(key: BackendKey): string {
  return `${key.processId}:${key.secret}`;
}
