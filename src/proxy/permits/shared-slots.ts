/** The places of an endpoint's clients, counted over all proxies. They are granted by the dozen, so few have to ask. */
import type { Budgets } from './budget.ts';
import { takePlace } from './direct-permit.ts';
import type { PlaceChannel } from './messages.ts';
import { shareBudgets } from './shared-budget.ts';
import type { EndpointSlots } from './slots.ts';

/** For others to say whether they have one to spare, which takes them a message. */
const spareMs = 250;
const sweepMs = 10_000;
const nobodyLeaves = new AbortController().signal;

export function createSharedSlots(channel: PlaceChannel, max: number, refusal: string): EndpointSlots {
  const budgets: Budgets = shareBudgets('clients', channel);
  setInterval(() => budgets.sweep(), sweepMs).unref();
  return {
    async take(endpointId) {
      const budget = budgets.of(endpointId);
      budget.learnLimit(max);
      const release = await takePlace(budget, spareMs, nobodyLeaves, refusal);
      let held = true;
      return () => {
        if (held) release();
        held = false;
      };
    },
  };
}
