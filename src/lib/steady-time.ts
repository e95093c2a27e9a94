/**
 * The time by which things are given up for good. A clock that is set an hour forward must not cost an hour of history,
 * so a jump forward counts only after the clock has stayed there for a day; until then time goes on as before the jump.
 * A jump back counts at once: an earlier time gives up less.
 */
import { dayMs } from './clock.ts';

export interface Watches {
  /** The clock of the machine, which somebody may set. */
  readonly clockMs: () => number;
  /** Time that passes, which nobody can set. */
  readonly passedMs: () => number;
}

export interface SteadyTime {
  now(): Date;
}

/** Corrections of a clock that is kept right are far smaller. */
const jumpMsMin = 30_000;

export const machineWatches: Watches = { clockMs: () => Date.now(), passedMs: () => performance.now() };

/** Ask it at least every few hours: a jump is noticed between two questions. */
export function createSteadyTime(watches: Watches = machineWatches, settledMs = dayMs): SteadyTime {
  let offsetMs = watches.clockMs() - watches.passedMs();
  /** When the clock was first found ahead. */
  let aheadSinceMs: number | null = null;
  return {
    now() {
      const passedMs = watches.passedMs();
      const foundMs = watches.clockMs() - passedMs;
      const isAhead = foundMs - offsetMs > jumpMsMin;
      aheadSinceMs = isAhead ? (aheadSinceMs ?? passedMs) : null;
      if (aheadSinceMs === null || passedMs - aheadSinceMs >= settledMs) [offsetMs, aheadSinceMs] = [foundMs, null];
      return new Date(offsetMs + passedMs);
    },
  };
}
