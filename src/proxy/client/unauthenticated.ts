/**
 * Counts the connections that have not authenticated yet, by address and in all, so that clients that open connections
 * and send nothing leave room for others.
 */
import { clientKey } from '../../lib/ip.ts';

export interface UnauthenticatedConnections {
  /**
   * Returns the function to call when the client has authenticated or is gone; it may be called more than once. Null
   * when there are too many.
   */
  enter(address: string): (() => void) | null;
}

export function createUnauthenticatedConnections(max: {
  readonly total: number;
  readonly perAddress: number;
}): UnauthenticatedConnections {
  const byAddress = new Map<string, number>();
  let total = 0;
  return {
    enter(address) {
      const key = clientKey(address);
      const count = byAddress.get(key) ?? 0;
      if (total >= max.total || count >= max.perAddress) return null;
      byAddress.set(key, count + 1);
      total += 1;
      let isCounted = true;
      return () => {
        if (!isCounted) return;
        isCounted = false;
        total -= 1;
        const left = (byAddress.get(key) ?? 1) - 1;
        if (left > 0) byAddress.set(key, left);
        else byAddress.delete(key);
      };
    },
  };
}
