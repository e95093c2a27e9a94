/** Injectable time, so that rules about deadlines can be tested without waiting for them, and units of time. */
export interface Clock {
  now(): Date;
}

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;
export const daySeconds = dayMs / 1_000;

export const systemClock: Clock = { now: () => new Date() };

/** Resolves after `ms`, or at once when the signal fires; never rejects. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal?.addEventListener('abort', finish, { once: true });
  });
}
