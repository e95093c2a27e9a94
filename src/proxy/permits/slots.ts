/** How many sessions each endpoint has, and the refusal of one too many. */
import { CatnapError } from '../../lib/errors.ts';

export interface EndpointSlots {
  /** The function gives the place back, once however often it is called. */
  take(endpointId: string): (() => void) | Promise<() => void>;
}

/** Of the only proxy, which need not ask anybody. */
export interface OwnSlots extends EndpointSlots {
  take(endpointId: string): () => void;
}

export const tooManyDirect = 'Too many connections to this endpoint. Please try again later.';
export const tooManyPooled = 'no more connections allowed';

export function createEndpointSlots(max: number, refusal = tooManyDirect): OwnSlots {
  const taken = new Map<string, number>();
  return {
    take(endpointId) {
      const count = taken.get(endpointId) ?? 0;
      if (count >= max) {
        throw new CatnapError('too_many_connections', refusal);
      }
      taken.set(endpointId, count + 1);
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        const left = (taken.get(endpointId) ?? 1) - 1;
        if (left > 0) taken.set(endpointId, left);
        else taken.delete(endpointId);
      };
    },
  };
}
