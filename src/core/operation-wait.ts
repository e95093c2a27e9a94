/**
 * Waiting for the end of an operation, for the few requests whose reply is its result. The notification makes it
 * quick, the poll makes it right. Past the deadline the answer is a 503 that is safe to repeat: the work goes on.
 */

import { changesChannel, type OperationStatus, selectOperationStatus } from '../db/operations.ts';
import { delay } from '../lib/clock.ts';
import { CatnapError } from '../lib/errors.ts';
import type { OperationId } from '../lib/ids.ts';
import type { Core } from './context.ts';

export interface OperationEnd {
  /** `gone` when the project was deleted meanwhile. */
  readonly status: Extract<OperationStatus, 'finished' | 'error' | 'cancelled' | 'skipped'> | 'gone';
  readonly error: string | null;
}

export type AwaitOperation = (id: OperationId) => Promise<OperationEnd>;

const waitMsMax = 30_000;
const lookEveryMs = 500;

export async function createOperationWaiter(
  core: Core,
  limitMs = waitMsMax,
): Promise<{ readonly awaitOperation: AwaitOperation; close(): Promise<void> }> {
  const { sql } = core.database;
  const waiting = new Map<string, Set<AbortController>>();
  const unlisten = await core.database.listen(changesChannel, (payload) => {
    // An empty payload says that the subscription was broken: everybody looks again.
    for (const [id, waiters] of waiting) {
      if (payload === '' || payload === id) for (const waiter of waiters) waiter.abort();
    }
  });

  async function untilNews(id: OperationId, look: () => Promise<OperationEnd | null>): Promise<OperationEnd | null> {
    const news = new AbortController();
    const waiters = waiting.get(id) ?? new Set();
    waiting.set(id, waiters.add(news));
    try {
      // Looked at after the subscription, so that an end in between is not missed.
      const end = await look();
      if (end === null) await delay(lookEveryMs, news.signal);
      return end;
    } finally {
      waiters.delete(news);
      if (waiters.size === 0) waiting.delete(id);
    }
  }

  const look = async (id: OperationId): Promise<OperationEnd | null> => {
    const row = await selectOperationStatus(sql, id);
    if (row === undefined) return { status: 'gone', error: null };
    const { status, error } = row;
    const isOver = status === 'finished' || status === 'error' || status === 'cancelled' || status === 'skipped';
    return isOver ? { status, error } : null;
  };

  return {
    awaitOperation: async (id) => {
      const giveUpAt = performance.now() + limitMs;
      while (performance.now() < giveUpAt) {
        const end = await untilNews(id, () => look(id));
        if (end !== null) return end;
      }
      throw new CatnapError('unavailable', 'it takes longer than usual and goes on; repeat the request to see it end', {
        retryAfterSeconds: 5,
      });
    },
    close: unlisten,
  };
}
