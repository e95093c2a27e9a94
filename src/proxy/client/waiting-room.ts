/**
 * Those who have not proved anything yet: so many of one address, and so many in all, so that strangers who open
 * connections and say nothing leave room for others.
 */
import { clientKey } from '../../lib/ip.ts';

export interface WaitingRoom {
  /** The function is to be called when the client has proved itself or is gone, or both. Null: no room. */
  enter(address: string): (() => void) | null;
}

export function createWaitingRoom(max: { readonly inAll: number; readonly perAddress: number }): WaitingRoom {
  const waiting = new Map<string, number>();
  let inAll = 0;
  return {
    enter(address) {
      const key = clientKey(address);
      const count = waiting.get(key) ?? 0;
      if (inAll >= max.inAll || count >= max.perAddress) return null;
      waiting.set(key, count + 1);
      inAll += 1;
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        inAll -= 1;
        const left = (waiting.get(key) ?? 1) - 1;
        if (left > 0) waiting.set(key, left);
        else waiting.delete(key);
      };
    },
  };
}
