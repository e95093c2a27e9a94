/** What a running compute used between two samples. */
import type { ComputeSample } from '../compute/interface/driver.ts';
import type { Reading } from '../core/autoscaling.ts';

export interface TimedSample {
  /** Milliseconds of a clock that only goes forward. */
  readonly at: number;
  readonly sample: ComputeSample;
}

export function readingBetween(before: TimedSample, after: TimedSample): Reading {
  const seconds = Math.max(0.001, (after.at - before.at) / 1_000);
  // A sum that went down was reset.
  const grown = (pick: (sample: ComputeSample) => number) => {
    const [from, to] = [pick(before.sample), pick(after.sample)];
    return to >= from ? to - from : to;
  };
  const periods = grown((sample) => sample.periods);
  const { usedBytes, cacheBytes, workingSetBytes, isPaused } = after.sample;
  return {
    seconds,
    cores: grown((sample) => sample.cpuSeconds) / seconds,
    throttled: periods === 0 ? 0 : grown((sample) => sample.throttledPeriods) / periods,
    refaultBytes: grown((sample) => sample.refaultBytes),
    usedBytes,
    cacheBytes,
    workingSetBytes,
    isPaused,
  };
}
