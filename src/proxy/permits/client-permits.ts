/**
 * Permits for the connections of clients: how many an endpoint may have, and the refusal of one too many. A proxy
 * counts its own clients, or shares the count with the other proxies as it shares budgets (`budget.ts`). The broker
 * then grants permits by the dozen, so that few clients wait for an answer from the parent process.
 */

import { CatnapError } from '../../lib/errors.ts';
import { takePermit } from './budget.ts';
import type { PermitChannel } from './messages.ts';
import { shareBudgets } from './shared-budget.ts';

export interface ClientPermits {
  /** Returns the function that releases the permit; it may be called more than once. */
  take(endpointId: string): (() => void) | Promise<() => void>;
}

export interface LocalClientPermits extends ClientPermits {
  take(endpointId: string): () => void;
}

export const tooManyDirect = 'Too many connections to this endpoint. Please try again later.';
export const tooManyPooled = 'no more connections allowed';

/** Counts the clients of this proxy alone. */
export function createLocalClientPermits(max: number, refusal = tooManyDirect): LocalClientPermits {
  const taken = new Map<string, number>();
  return {
    take(endpointId) {
      const count = taken.get(endpointId) ?? 0;
      if (count >= max) throw new CatnapError('too_many_connections', refusal);
      taken.set(endpointId, count + 1);
      return onlyOnce(() => {
        const left = (taken.get(endpointId) ?? 1) - 1;
        if (left > 0) taken.set(endpointId, left);
        else taken.delete(endpointId);
      });
    },
  };
}

/** Time for another proxy to return a free permit, which takes it one message. */
const returnMs = 250;
const sweepMs = 10_000;
const neverAborted = new AbortController().signal;

/** Counts the clients of all proxies. */
export function createSharedClientPermits(channel: PermitChannel, max: number, refusal: string): ClientPermits {
  const budgets = shareBudgets('clients', channel);
  setInterval(() => budgets.sweep(), sweepMs).unref();
  return {
    async take(endpointId) {
      const budget = budgets.of(endpointId);
      budget.learnLimit(max);
      return onlyOnce(await takePermit(budget, returnMs, neverAborted, refusal));
    },
  };
}

function onlyOnce(release: () => void): () => void {
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    release();
  };
}
