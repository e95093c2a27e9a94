/**
 * The memory that the proxy uses for SQL over HTTP: bodies of requests that wait for their turn, and replies that were
 * not read yet. Each is small, but without a bound on all of them one endpoint could use up the machine's memory.
 */
import { CatnapError } from '../../lib/errors.ts';

export interface HeldBytes {
  /** Starts counting for one request. */
  begin(endpointId: string): Share;
}

export interface Share {
  /** Throws when there is no room. */
  hold(bytes: number): void;
  /** Stops counting; all bytes of the request are free again. */
  end(): void;
}

export function createHeldBytes(max: { readonly total: number; readonly perEndpoint: number }): HeldBytes {
  const held = new Map<string, number>();
  let total = 0;
  const add = (endpointId: string, bytes: number) => {
    total += bytes;
    const ofEndpoint = (held.get(endpointId) ?? 0) + bytes;
    if (ofEndpoint > 0) held.set(endpointId, ofEndpoint);
    else held.delete(endpointId);
  };
  return {
    begin(endpointId) {
      let own = 0;
      let isOver = false;
      return {
        hold(bytes) {
          if (isOver) return;
          if (total + bytes > max.total || (held.get(endpointId) ?? 0) + bytes > max.perEndpoint) {
            throw new CatnapError('too_many_connections', 'too much is being sent over HTTP at once; try again');
          }
          own += bytes;
          add(endpointId, bytes);
        },
        end() {
          if (isOver) return;
          isOver = true;
          add(endpointId, -own);
        },
      };
    },
  };
}
