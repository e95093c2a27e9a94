/**
 * How tests deal with time. This is the one file in which they may let it pass: what a test waits for is polled until
 * it holds, and each other reason to pause has a name that says it.
 */
import { delay } from '../../src/lib/clock.ts';

interface Polling {
  readonly deadlineMs?: number;
  readonly everyMs?: number;
}

const usualPollMs = 20;
/**
 * A check often costs a request, and the program that answers it needs the processor for what is waited for: the pauses
 * of a check that does not say its own grow up to this.
 */
const slowPollMs = 200;
const pollGrowth = 1.3;

/**
 * How long a test waits for what it expects, however busy the machine is: a deadline tells a fault from patience, and
 * says nothing about speed. A test that waits several times in a row has the other one.
 */
export const usualDeadlineMs = 150_000;
export const usualTestMs = 480_000;

/** Tries until it holds or the deadline passes, then fails with the last reason. */
export async function eventually<T>(check: () => Promise<T> | T, options: Polling = {}): Promise<T> {
  const giveUpAt = Date.now() + (options.deadlineMs ?? usualDeadlineMs);
  for (let pauseMs = usualPollMs; ; pauseMs = Math.min(slowPollMs, pauseMs * pollGrowth)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      await delay(options.everyMs ?? pauseMs);
    }
  }
}

/** Proves that something does not happen: checks now and until the time is over, and fails with the first check. */
export async function stays(check: () => Promise<void> | void, forMs: number): Promise<void> {
  const endsAt = Date.now() + forMs;
  for (;;) {
    await check();
    const leftMs = endsAt - Date.now();
    if (leftMs <= 0) return;
    await delay(Math.min(leftMs, usualPollMs));
  }
}

/** Before an accident that may happen at any moment of what has just begun. */
export function randomMoment(withinMs: number, notBeforeMs = 0): Promise<void> {
  return delay(notBeforeMs + Math.random() * withinMs);
}

/** Between two requests of a client that makes load, which is to leave others some of the machine. */
export function thinkTime(ms: number): Promise<void> {
  return delay(ms);
}

/** While something runs that is measured over this time, or that gets this much of a start. */
export function letRun(ms: number): Promise<void> {
  return delay(ms);
}
