/**
 * Waiting for the end of an operation, for the few requests whose reply is its result. The notification makes it
 * quick, the poll makes it right. Past the deadline the answer is a 503 that is safe to repeat: the work goes on.
 */

import type { Sql } from '../db/client.ts';
import { followKeys } from '../db/follow.ts';
import { changesChannel, type OperationStatus, selectOperationStatus } from '../db/operations.ts';
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
const readEveryMs = 500;

export async function createOperationFollower(
  core: Core,
  limitMs = waitMsMax,
): Promise<{ readonly awaitOperation: AwaitOperation; close(): Promise<void> }> {
  const { database } = core;
  // The channel names endpoints too, which nothing here waits for.
  const news = await followKeys(database, { [changesChannel]: (payload) => ({ key: payload, told: null }) });
  return {
    awaitOperation: async (id) => {
      const giveUpAt = performance.now() + limitMs;
      const interest = news.interestIn(id);
      try {
        while (performance.now() < giveUpAt) {
          const end = await readEnd(database.sql, id);
          if (end !== null) return end;
          await interest.wait(readEveryMs);
        }
      } finally {
        interest.end();
      }
      throw new CatnapError('unavailable', 'the operation still runs; repeat the request to get its result', {
        retryAfterSeconds: 5,
      });
    },
    close: news.close,
  };
}

/** Null while the operation goes on. */
async function readEnd(sql: Sql, id: OperationId): Promise<OperationEnd | null> {
  const row = await selectOperationStatus(sql, id);
  if (row === undefined) return { status: 'gone', error: null };
  const { status, error } = row;
  const isOver = status === 'finished' || status === 'error' || status === 'cancelled' || status === 'skipped';
  return isOver ? { status, error } : null;
}
