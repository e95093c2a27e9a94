/**
 * Plans and their limits. Counts are limited on `free` only, apart from snapshots, which a schedule makes without
 * anybody watching; the others differ in the sizes they offer.
 */
import type { PlanName } from '../lib/config.ts';

export interface Plan {
  readonly name: PlanName;
  readonly cuMax: number;
  /** Whether the delay before a compute falls asleep may be chosen. */
  readonly canChangeSuspend: boolean;
  readonly projectsMax: number | null;
  readonly branchesPerProjectMax: number | null;
  readonly replicasPerProjectMax: number | null;
  readonly snapshotsPerProjectMax: number;
}

const uncounted = { projectsMax: null, branchesPerProjectMax: null, replicasPerProjectMax: null };

const plans: Readonly<Record<PlanName, Plan>> = {
  free: {
    name: 'free',
    cuMax: 2,
    canChangeSuspend: false,
    projectsMax: 100,
    branchesPerProjectMax: 10,
    replicasPerProjectMax: 3,
    snapshotsPerProjectMax: 10,
  },
  launch: { name: 'launch', cuMax: 16, canChangeSuspend: true, ...uncounted, snapshotsPerProjectMax: 100 },
  scale: { name: 'scale', cuMax: 56, canChangeSuspend: true, ...uncounted, snapshotsPerProjectMax: 1_000 },
};

export function planOf(name: PlanName): Plan {
  return plans[name];
}
