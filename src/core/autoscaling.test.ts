import { describe, expect, test } from 'vitest';
import { type Bounds, decide, freshState, type Reading, type ScalerState, shareGrowth } from './autoscaling.ts';

const gib = 1024 ** 3;
const range: Bounds = { minCu: 0.25, maxCu: 2, calmSeconds: 30 };
const still: Reading = {
  seconds: 0.5,
  cores: 0,
  throttled: 0,
  usedBytes: 0.05 * gib,
  cacheBytes: 0,
  workingSetBytes: 0,
  refaultBytes: 0,
  isPaused: false,
};

/** What a load that wants `demand` cores looks like through a quota of `cu`. */
function cpuLoad(demand: number): (cu: number) => Reading {
  return (cu) => ({ ...still, cores: Math.min(demand, cu), throttled: demand > cu ? 1 : demand > 0.9 * cu ? 0.1 : 0 });
}

interface Step {
  readonly atSeconds: number;
  readonly cu: number;
  readonly reason: string | null;
}

/** Replays a load and returns the sizes that it led to. */
function replay(load: (seconds: number) => (cu: number) => Reading, seconds: number, from = 0.25, within = range) {
  let state: ScalerState = freshState;
  let cu = from;
  const steps: Step[] = [];
  for (let at = 0.5; at <= seconds; at += 0.5) {
    const decision = decide(state, load(at)(cu), cu, within);
    state = decision.state;
    if (decision.cu === cu) continue;
    cu = decision.cu;
    steps.push({ atSeconds: at, cu, reason: decision.reason });
  }
  return steps;
}

const sizesOf = (steps: readonly Step[]) => steps.map(({ cu }) => cu);

describe('up', () => {
  test('sustained load is answered within two seconds, and reaches the largest size soon after', () => {
    const steps = replay(() => cpuLoad(4), 10);
    expect(steps[0]?.atSeconds).toBeLessThanOrEqual(2);
    expect(sizesOf(steps)).toEqual([0.5, 1, 2]);
    expect(steps[2]?.atSeconds).toBeLessThanOrEqual(3);
    expect(steps[0]?.reason).toBe('cpu: 0.25 of 0.25 cores used, held back in 100 % of the time');
  });

  test('a blink changes nothing', () => {
    const blinks = (at: number) => (at % 5 === 0 ? cpuLoad(2) : () => still);
    expect(replay(blinks, 120)).toEqual([]);
  });

  test('it stops at the size that is enough', () => {
    expect(sizesOf(replay(() => cpuLoad(0.7), 60, 0.25, { ...range, maxCu: 16 }))).toEqual([0.5, 1]);
  });

  test('memory does not wait, and the goal is the largest of the three', () => {
    const used = { ...still, usedBytes: 0.9 * gib };
    expect(decide(freshState, used, 0.25, range)).toMatchObject({ cu: 0.5, reason: 'memory: 922 of 1024 MiB used' });
    const both = { ...used, cores: 0.25, throttled: 1, usedBytes: 5 * gib };
    expect(decide(freshState, both, 0.25, range)).toMatchObject({ cu: 1.75 });
    const paused = { ...still, usedBytes: 0.7 * gib, isPaused: true };
    expect(decide(freshState, paused, 0.25, range)).toMatchObject({
      cu: 0.5,
      reason: 'memory: 717 of 1024 MiB used, and waiting for more',
    });
  });

  test('a working set that does not fit makes it larger, one that is read once does not', () => {
    const scan = { ...still, cacheBytes: 0.9 * gib };
    expect(replay(() => () => scan, 30)).toEqual([]);
    const hot = { ...scan, workingSetBytes: 0.8 * gib };
    expect(sizesOf(replay(() => () => hot, 30))).toEqual([0.5]);
    const thrashing = (cu: number) => ({ ...scan, refaultBytes: cu < 1 ? 0.05 * gib : 0 });
    expect(sizesOf(replay(() => thrashing, 30))).toEqual([0.5, 0.75, 1.25]);
  });

  test('never beyond the range', () => {
    expect(sizesOf(replay(() => cpuLoad(8), 60, 0.5, { ...range, minCu: 0.5, maxCu: 0.75 }))).toEqual([0.75]);
    const huge = { ...still, usedBytes: 100 * gib };
    expect(decide(freshState, huge, 0.25, range).cu).toBe(2);
  });
});

describe('down', () => {
  test('slowly, in halves, after a calm time', () => {
    const steps = replay(() => () => still, 120, 2);
    expect(steps.map(({ atSeconds, cu }) => [atSeconds, cu])).toEqual([
      [30, 1],
      [45, 0.5],
      [60, 0.25],
    ]);
    expect(steps[0]?.reason).toBe('calm: 0.25 CU were enough for 30 s');
  });

  test('as slowly as the operator says', () => {
    const steps = replay(() => () => still, 120, 2, { ...range, calmSeconds: 2 });
    expect(steps.map(({ atSeconds }) => atSeconds)).toEqual([2, 3, 4]);
  });

  test('not while a load returns now and then', () => {
    const everyTwentySeconds = (at: number) => (at % 20 < 3 ? cpuLoad(2) : () => still);
    expect(sizesOf(replay(everyTwentySeconds, 600))).toEqual([0.5, 1, 2]);
  });

  test('a shrink that proved wrong makes the next one later', () => {
    const everyMinute = (at: number) => (at % 60 < 5 ? cpuLoad(2) : () => still);
    const steps = replay(everyMinute, 1800);
    const late = steps.filter(({ atSeconds }) => atSeconds > 600);
    expect(late).toEqual([]);
  });

  test('no load that stays the same makes it go up and down', () => {
    for (let demand = 0; demand <= 3; demand += 0.05) {
      const steps = replay(() => cpuLoad(demand), 1800);
      // Doubling may have gone too far, which is corrected once.
      expect({ demand, late: steps.filter(({ atSeconds }) => atSeconds > 60) }).toEqual({ demand, late: [] });
    }
  });

  test('memory in use keeps it up', () => {
    expect(replay(() => () => ({ ...still, usedBytes: 4.5 * gib }), 600, 2)).toEqual([]);
  });
});

describe('a machine that is short', () => {
  const wish = (cu: number, wanted: number) => ({ cu, wanted });

  test('gives everybody what they ask for while there is enough', () => {
    const wishes = [wish(0.25, 1), wish(1, 2)];
    expect([...shareGrowth(wishes, 4).values()]).toEqual([1, 2]);
  });

  test('shares by size, and what one does not need goes to the others', () => {
    const wishes = [wish(1, 8), wish(3, 8)];
    expect([...shareGrowth(wishes, 2).values()]).toEqual([1.5, 4.5]);
    expect([...shareGrowth([wish(1, 8), wish(3, 3.25)], 2).values()]).toEqual([2.75, 3.25]);
  });

  test('nobody starves, and nobody is made smaller', () => {
    const many = Array.from({ length: 6 }, () => wish(0.25, 2));
    expect([...shareGrowth([wish(8, 16), ...many], 1).values()]).toEqual([8.75, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25]);
    expect([...shareGrowth([wish(1, 2)], -3).values()]).toEqual([1]);
  });
});
