import { beforeEach, describe, expect, test } from 'vitest';
import { dayMs, hourMs, minuteMs } from './clock.ts';
import { createSteadyTime, type SteadyTime } from './steady-time.ts';

const start = Date.UTC(2026, 0, 1);
let clockMs: number;
let passedMs: number;
let time: SteadyTime;

beforeEach(() => {
  [clockMs, passedMs] = [start, 5_000];
  time = createSteadyTime({ clockMs: () => clockMs, passedMs: () => passedMs });
});

function pass(ms: number): void {
  clockMs += ms;
  passedMs += ms;
}

/** Time since the start, as it is told. */
const told = () => time.now().getTime() - start;

describe('a clock that', () => {
  test('runs is followed, small corrections too', () => {
    pass(hourMs);
    expect(told()).toBe(hourMs);
    clockMs += 2_000;
    expect(told()).toBe(hourMs + 2_000);
    clockMs -= 2_000;
    expect(told()).toBe(hourMs);
  });

  test('jumps forward is not believed until it has stayed there for a day', () => {
    clockMs += hourMs;
    expect(told()).toBe(0);
    pass(dayMs - minuteMs);
    expect(told()).toBe(dayMs - minuteMs);
    pass(2 * minuteMs);
    expect(told()).toBe(dayMs + minuteMs + hourMs);
  });

  test('jumps forward and is put right has changed nothing', () => {
    clockMs += hourMs;
    expect(told()).toBe(0);
    pass(20 * hourMs);
    expect(told()).toBe(20 * hourMs);
    clockMs -= hourMs;
    expect(told()).toBe(20 * hourMs);
    clockMs += hourMs;
    pass(20 * hourMs);
    expect(told()).toBe(40 * hourMs);
  });

  test('jumps back is believed at once', () => {
    pass(hourMs);
    clockMs -= hourMs;
    expect(told()).toBe(0);
    pass(minuteMs);
    expect(told()).toBe(minuteMs);
  });
});
