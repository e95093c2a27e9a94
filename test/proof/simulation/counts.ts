/** What schedules have done, in numbers. */
export interface Counts {
  moves: number;
  faults: number;
  crashes: number;
  stalls: number;
  commands: number;
  refusals: number;
  operations: number;
}

export const noCounts = (): Counts => ({
  moves: 0,
  faults: 0,
  crashes: 0,
  stalls: 0,
  commands: 0,
  refusals: 0,
  operations: 0,
});

export function addCounts(to: Counts, more: Counts): void {
  for (const name of Object.keys(to) as (keyof Counts)[]) to[name] += more[name];
}
