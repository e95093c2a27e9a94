/**
 * Deletes old records: finished operations after half a year, stored replies after a day, overtaken changes of users
 * after a week, schemas of the past that nobody fetched, expired sign-ins, reports of proxies that have ended,
 * deliveries of webhooks after a week or, where an event can last a month, longer, and old records of the embedded auth
 * provider.
 */

import { forgetOldAuthProviderRecords } from '../auth-provider/core/retention.ts';
import { deleteExpiredConsoleTokens } from '../db/console-sessions.ts';
import { deleteOldIdempotencyKeys } from '../db/idempotency-keys.ts';
import { deleteOldOperations } from '../db/operations.ts';
import { deleteOldSchemaReads } from '../db/schema-reads.ts';
import { deleteOldTransfers } from '../db/transfers.ts';
import { deleteOvertakenUserChanges } from '../db/users-sync.ts';
import { deleteExpiredWaitingLogins } from '../db/waiting-logins.ts';
import { deleteOldWebhookDeliveries } from '../db/webhooks.ts';
import { dayMs, minuteMs } from '../lib/clock.ts';
import { type Item, makeReconciler, type ReconcilerParts } from './reconciler.ts';

const operationDays = 183;
const replyHours = 24;
const unfetchedMinutes = 5;
const deliveryDays = { days: 7, namedDays: 40 };
const overtakenChangeMs = 7 * dayMs;

export const retention = makeReconciler('retention', 15 * minuteMs, async (parts) => {
  const { sql } = parts.core.database;
  const now = parts.core.clock.now();
  return [
    forget(parts, 'replies', () => deleteOldIdempotencyKeys(sql, replyHours)),
    forget(parts, 'operations', () => deleteOldOperations(sql, operationDays)),
    forget(parts, 'schemas that nobody fetched', () => deleteOldSchemaReads(sql, unfetchedMinutes)),
    forget(parts, 'transfers', () => deleteOldTransfers(sql)),
    forget(parts, 'sign-ins', () => deleteExpiredConsoleTokens(sql)),
    forget(parts, 'links of logins', () => deleteExpiredWaitingLogins(sql)),
    forget(parts, 'deliveries of webhooks', () => deleteOldWebhookDeliveries(sql, { now, ...deliveryDays })),
    { subject: 'records of the embedded auth provider', work: () => forgetOldAuthProviderRecords(sql, now) },
    forget(parts, 'changes of users', () =>
      deleteOvertakenUserChanges(sql, new Date(now.getTime() - overtakenChangeMs)),
    ),
  ];
});

function forget({ log }: ReconcilerParts, subject: string, remove: () => Promise<number>): Item {
  return {
    subject,
    work: async () => {
      const count = await remove();
      if (count > 0) log.debug({ subject, count }, 'old records were removed');
    },
  };
}
