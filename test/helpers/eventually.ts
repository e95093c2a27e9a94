/** Waiting without sleeping: tries until it holds or the deadline passes, then fails with the last reason. */
import { delay } from '../../src/lib/clock.ts';

export async function eventually<T>(
  check: () => Promise<T> | T,
  options: { deadlineMs?: number; everyMs?: number } = {},
): Promise<T> {
  const giveUpAt = Date.now() + (options.deadlineMs ?? 15_000);
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      await delay(options.everyMs ?? 20);
    }
  }
}
