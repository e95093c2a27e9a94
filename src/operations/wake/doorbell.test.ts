import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Core } from '../../core/context.ts';
import { Doorbell, type Lane } from './lanes.ts';

const pollMs = 1_000;
const anyLane: Lane = { core: {} as Core, urgentOnly: false };
const urgentLane: Lane = { ...anyLane, urgentOnly: true };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lanes that never find anything; returns how often they have looked so far. */
function startLanes(bell: Doorbell, count: number, lane: Lane = anyLane) {
  const looks = { count: 0 };
  const loop = async () => {
    for (;;) {
      looks.count++;
      await bell.wait(lane, pollMs, bell.rings);
    }
  };
  for (let i = 0; i < count; i++) void loop();
  return looks;
}

test('however many lanes are idle, they look once in a while together', async () => {
  const bell = new Doorbell();
  const looks = startLanes(bell, 8);
  const urgentLooks = startLanes(bell, 2, urgentLane);
  await vi.advanceTimersByTimeAsync(10 * pollMs);
  expect(looks.count).toBe(8 + 10);
  expect(urgentLooks.count).toBe(2 + 10);
});

test('the lane that has the shortest to wait looks first, however long the others wait', async () => {
  const bell = new Doorbell();
  const looked: string[] = [];
  const wait = (name: string, ms: number) => void bell.wait(anyLane, ms, bell.rings).then(() => looked.push(name));
  wait('long', 5_000);
  wait('short', 20);
  await vi.advanceTimersByTimeAsync(20);
  expect(looked).toEqual(['short']);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(looked).toEqual(['short', 'long']);
});

test('while the lane whose turn it is works, another one looks', async () => {
  const bell = new Doorbell();
  const looked: string[] = [];
  for (const name of ['first', 'second']) void bell.wait(anyLane, pollMs, bell.rings).then(() => looked.push(name));
  bell.ring(false);
  await vi.advanceTimersByTimeAsync(0);
  expect(looked).toEqual(['first']);
  await vi.advanceTimersByTimeAsync(pollMs);
  expect(looked).toEqual(['first', 'second']);
});
