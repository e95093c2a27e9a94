/** Every fault there is, and how one is chosen. */
import type { Random } from '../../random.ts';
import type { World } from '../world.ts';
import type { Fault } from './fault.ts';
import { faultsOfCalls } from './of-calls.ts';
import { faultsOfCatnap } from './of-catnap.ts';
import { faultsOfClocks } from './of-clocks.ts';
import { faultsOfComputes } from './of-computes.ts';
import { faultsOfDisks } from './of-disks.ts';
import { faultsOfSystemDatabase } from './of-system-database.ts';

export const allFaults: readonly Fault[] = [
  ...faultsOfCatnap,
  ...faultsOfSystemDatabase,
  ...faultsOfComputes,
  ...faultsOfDisks,
  ...faultsOfClocks,
  ...faultsOfCalls,
];

/** By weight, among those that are possible now. */
export function pickFault(world: World, faults: readonly Fault[], random: Random): Fault {
  const possible = faults.filter((fault) => fault.isPossible(world));
  let left = random.next() * possible.reduce((sum, { weight }) => sum + weight, 0);
  for (const fault of possible) {
    left -= fault.weight;
    if (left < 0) return fault;
  }
  return random.pick(possible);
}
