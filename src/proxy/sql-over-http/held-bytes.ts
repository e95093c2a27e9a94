/**
 * What the proxy keeps in memory for SQL over HTTP: bodies of requests that wait for their turn, and replies that
 * nobody has fetched yet. Each is small; without a bound on all of them one endpoint could take the whole machine.
 */
import { CatnapError } from '../../lib/errors.ts';

export interface HeldBytes {
  /** One request's share. */
  begin(endpointId: string): Share;
}

export interface Share {
  /** Throws when there is no room. */
  hold(bytes: number): void;
  /** Gives all of it back; what is held afterwards is not counted. */
  end(): void;
}

export function createHeldBytes(max: { readonly inAll: number; readonly perEndpoint: number }): HeldBytes {
  const held = new Map<string, number>();
  let inAll = 0;
  const add = (endpointId: string, bytes: number) => {
    inAll += bytes;
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
          if (inAll + bytes > max.inAll || (held.get(endpointId) ?? 0) + bytes > max.perEndpoint) {
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
