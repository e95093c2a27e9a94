/** Old records go: finished operations after half a year, stored replies after a day, sign-ins when they expire. */

import { forgetOldAuthProviderRecords } from '../auth-provider/core/retention.ts';
import { deleteExpiredConsoleTokens } from '../db/console-sessions.ts';
import { deleteOldIdempotencyKeys } from '../db/idempotency-keys.ts';
import { deleteOldOperations } from '../db/operations.ts';
import { deleteOvertakenUserChanges } from '../db/users-sync.ts';
import type { Reconciler } from './reconciler.ts';

const operationDays = 183;
const replyHours = 24;
const overtakenChangeMs = 7 * 86_400_000;

export const retention: Reconciler = {
  name: 'retention',
  everyMs: 15 * 60_000,
  turn: async ({ core, log }) => {
    const replies = await deleteOldIdempotencyKeys(core.database.sql, replyHours);
    const operations = await deleteOldOperations(core.database.sql, operationDays);
    const signIns = await deleteExpiredConsoleTokens(core.database.sql);
    await forgetOldAuthProviderRecords(core.database.sql, core.clock.now());
    await deleteOvertakenUserChanges(core.database.sql, new Date(core.clock.now().getTime() - overtakenChangeMs));
    if (replies + operations + signIns > 0) log.debug({ replies, operations, signIns }, 'old records were removed');
  },
};
