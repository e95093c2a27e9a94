/** Plans and their limits. Counts are limited on `free` only; the others differ in the sizes they offer. */
import type { PlanName } from '../config.ts';

export interface Plan {
  readonly name: PlanName;
  readonly cuMax: number;
  readonly projectsMax: number | null;
  readonly branchesPerProjectMax: number | null;
}

const plans: Readonly<Record<PlanName, Plan>> = {
  free: { name: 'free', cuMax: 2, projectsMax: 100, branchesPerProjectMax: 10 },
  launch: { name: 'launch', cuMax: 16, projectsMax: null, branchesPerProjectMax: null },
  scale: { name: 'scale', cuMax: 56, projectsMax: null, branchesPerProjectMax: null },
};

export function planOf(name: PlanName): Plan {
  return plans[name];
}
