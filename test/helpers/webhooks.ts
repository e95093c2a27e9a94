/** Deliveries of webhooks, for tests that need one without waiting for an event. */
import { randomUUID } from 'node:crypto';
import { insertDeliveries } from '../../src/db/webhooks.ts';
import { asWebhookId } from '../../src/lib/ids.ts';
import type { TestCore } from './core.ts';

/** Returns its id. */
export async function insertDelivery({ core }: TestCore, webhookId: string, body = '{}'): Promise<string> {
  const id = randomUUID();
  const now = core.clock.now();
  const event = 'operation.ended';
  const row = { id, webhookId: asWebhookId(webhookId), eventId: `${event}:${id}`, event, body } as const;
  await insertDeliveries(core.database.sql, [{ ...row, replayOf: null, dueAt: now, createdAt: now }]);
  return id;
}
