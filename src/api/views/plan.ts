/** Plans in the words and numbers that clients expect. */
import type { PlanName } from '../../lib/config.ts';

/** The Python SDK knows no newer words than these. */
export const subscriptionTypes: Readonly<Record<PlanName, string>> = {
  free: 'free_v2',
  launch: 'launch',
  scale: 'scale',
};

/** The wire has no word for "no limit", and clients compare counts with the number. */
export function limitOf(max: number | null): number {
  return max ?? 1_000_000;
}
