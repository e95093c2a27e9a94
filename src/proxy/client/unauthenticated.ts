/**
 * Bounds the connections that have not authenticated yet, by address and in all. When there is no room, the oldest one
 * of the address that has the most is ended: a client that logs in needs a moment, and one that only holds a connection
 * is the oldest sooner or later. So a flood costs its own address first, and new clients still get in.
 */
import { clientKey } from '../../lib/ip.ts';

export interface UnauthenticatedConnections {
  /**
   * Returns the function to call when the client has authenticated or is gone; it may be called more than once. Null
   * when there are too many that cannot be ended. `end` is called when this one has to make room.
   */
  enter(address: string, end?: () => void): (() => void) | null;
}

interface Entry {
  readonly key: string;
  readonly end: (() => void) | undefined;
}

export function createUnauthenticatedConnections(max: {
  readonly total: number;
  readonly perAddress: number;
}): UnauthenticatedConnections {
  /** The entries of each address, the oldest first. */
  const byAddress = new Map<string, Set<Entry>>();
  let total = 0;

  const remove = (entry: Entry) => {
    const ofAddress = byAddress.get(entry.key);
    if (ofAddress?.delete(entry) !== true) return;
    total -= 1;
    if (ofAddress.size === 0) byAddress.delete(entry.key);
  };

  const endOldestOf = (entries: Iterable<Entry>): boolean => {
    for (const entry of entries) {
      if (entry.end === undefined) continue;
      remove(entry);
      entry.end();
      return true;
    }
    return false;
  };

  const largest = () => {
    let found: ReadonlySet<Entry> = new Set();
    for (const ofAddress of byAddress.values()) if (ofAddress.size > found.size) found = ofAddress;
    return found;
  };

  const hasRoomFor = (key: string): boolean => {
    const own = byAddress.get(key) ?? new Set();
    if (own.size >= max.perAddress) return endOldestOf(own);
    return total < max.total || endOldestOf(largest());
  };

  return {
    enter(address, end) {
      const key = clientKey(address);
      if (!hasRoomFor(key)) return null;
      const entry: Entry = { key, end };
      byAddress.set(key, (byAddress.get(key) ?? new Set<Entry>()).add(entry));
      total += 1;
      return () => remove(entry);
    },
  };
}
