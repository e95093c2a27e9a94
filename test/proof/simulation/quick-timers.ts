/**
 * Short delays in the code under test become turns of the event loop, so that a schedule neither waits for them nor
 * depends on how long they take. A heartbeat never comes: a schedule decides itself when a lease is lost.
 */

/** Longer than any delay between two gates, shorter than what the database's client waits for. */
const shortMs = 50;
/** Of workers in a schedule; its heartbeat is recognised by a third of it. */
export const leaseMs = 864_000_000;

let pending = 0;

export const areTimersPending = () => pending > 0;

const realTimeout = globalThis.setTimeout;

/** Returns when `call` is called, or after some milliseconds of real time. */
export function within(ms: number, wait: (call: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = realTimeout(resolve, ms);
    wait(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

export function quickenTimers(): () => void {
  const { setTimeout: slowTimeout, setInterval: slowInterval } = globalThis;
  const soon = (callback: (...words: unknown[]) => void, ms?: number, ...words: unknown[]) => {
    if ((ms ?? 0) > shortMs) return slowTimeout(callback, ms, ...words);
    pending++;
    return setImmediate(() => {
      pending--;
      callback(...words);
    });
  };
  const never = (callback: () => void, ms?: number) => {
    const timer = slowInterval(callback, ms);
    if (ms === leaseMs / 3) clearInterval(timer);
    return timer;
  };
  // Node's own `promisify` and disposal of timers are not used by anything that runs in a schedule.
  Object.assign(globalThis, { setTimeout: soon, setInterval: never });
  return () => {
    Object.assign(globalThis, { setTimeout: slowTimeout, setInterval: slowInterval });
  };
}
