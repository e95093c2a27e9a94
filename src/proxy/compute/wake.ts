/**
 * One wake per endpoint at a time, shared by all clients that wait for it. Each client waits for a limited time; the
 * wake itself goes on without it, since the next client will want the compute too.
 */
import { databaseFailure } from '../../lib/database-failure.ts';
import { CatnapError } from '../../lib/errors.ts';
import type { ControlPlane, DialAddress } from '../kit/control-plane.ts';
import { waitFor } from '../kit/wait-for.ts';

type OnReady = (address: DialAddress) => void;

export interface Waker {
  /**
   * Rejects with a CatnapError, or with the signal's reason when the client leaves. `onReady` may be called before the
   * address is returned, with that of a server whose route is not open yet.
   */
  wake(endpointId: string, signal: AbortSignal, onReady?: OnReady): Promise<DialAddress>;
}

export function createWaker(controlPlane: ControlPlane, wakeMs: number): Waker {
  const underWay = new Map<string, Promise<DialAddress>>();

  const join = (endpointId: string): Promise<DialAddress> => {
    const running = underWay.get(endpointId);
    if (running) return running;
    const started = askToWake(controlPlane, endpointId);
    underWay.set(endpointId, started);
    const forget = () => {
      clearTimeout(timer);
      if (underWay.get(endpointId) === started) underWay.delete(endpointId);
    };
    // A wake that never answers must not hold up clients that come after the first ones gave up.
    const timer = setTimeout(forget, wakeMs);
    timer.unref();
    started.then(forget, forget);
    return started;
  };

  const waiting = new Map<string, Set<OnReady>>();
  controlPlane.onReady?.((endpointId, address) => {
    for (const tell of waiting.get(endpointId) ?? []) tell(address);
  });

  return {
    wake: async (endpointId, signal, onReady = () => {}) => {
      const those = waiting.get(endpointId) ?? new Set();
      waiting.set(endpointId, those.add(onReady));
      try {
        return await waitFor(join(endpointId), wakeMs, signal);
      } finally {
        those.delete(onReady);
        if (those.size === 0 && waiting.get(endpointId) === those) waiting.delete(endpointId);
      }
    },
  };
}

async function askToWake(controlPlane: ControlPlane, endpointId: string): Promise<DialAddress> {
  try {
    return await controlPlane.wake(endpointId);
  } catch (thrown) {
    if (thrown instanceof CatnapError) throw thrown;
    const kind = databaseFailure(thrown) === null ? 'internal' : 'unavailable';
    throw new CatnapError(kind, 'Control plane request failed', { cause: thrown });
  }
}
