/** Repeats a call for as long as the cause of its failure passes by itself. */
import { delay } from '../../../lib/clock.ts';
import { isVerdict } from './api-error.ts';

export interface Patience {
  /** No attempt begins later than this after the first one. */
  readonly forMs: number;
  readonly firstPauseMs: number;
  readonly pauseMsMax: number;
}

/** An operation of Catnap's is repeated as a whole later on, so a single call need not outlast an upgrade. */
export const usualPatience: Patience = { forMs: 15_000, firstPauseMs: 100, pauseMsMax: 3_000 };

/** Twice as long each time, half of it at random: callers that failed together should not come back together. */
export function pauseMs({ firstPauseMs, pauseMsMax }: Patience, attempt: number, random = Math.random): number {
  const full = Math.min(pauseMsMax, firstPauseMs * 2 ** Math.min(attempt, 20));
  return full / 2 + (full / 2) * random();
}

export async function withRetries<T>(
  call: () => Promise<T>,
  patience: Patience = usualPatience,
  signal?: AbortSignal,
): Promise<T> {
  const giveUpAt = performance.now() + patience.forMs;
  for (let attempt = 0; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!isVerdict(error, 'retryable') || signal?.aborted) throw error;
      const waitMs = Math.max(error.retryAfterMs ?? 0, pauseMs(patience, attempt));
      if (performance.now() + waitMs > giveUpAt) throw error;
      await delay(waitMs, signal);
    }
  }
}
