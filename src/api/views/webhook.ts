/** Webhooks and their deliveries: rows to the wire, and paths to the domain. */
import type { Static } from 'typebox';
import type { Webhook, WebhookDelivery } from '../../core/webhook.ts';
import { asWebhookId } from '../../lib/ids.ts';
import type { WebhookDelivery as DeliverySchema, Webhook as WebhookSchema } from '../schemas/webhook.ts';
import { optionalTime, present, time } from './common.ts';
import { projectAddress } from './params.ts';

export const webhookAddress = (params: { project_id: string; webhook_id: string }) => ({
  ...projectAddress(params),
  webhookId: asWebhookId(params.webhook_id),
});

export function webhookView(row: Webhook): Static<typeof WebhookSchema> {
  return {
    id: row.id,
    project_id: row.projectId,
    url: row.url,
    events: [...row.events],
    enabled: row.isEnabled,
    ...present({ failing_since: optionalTime(row.failingSince) }),
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
  };
}

export function deliveryView(row: WebhookDelivery): Static<typeof DeliverySchema> {
  return {
    id: row.id,
    event_id: row.eventId,
    event: row.event,
    status: row.status,
    attempts: row.attempts,
    ...present({
      next_attempt_at: row.status === 'pending' ? time(row.dueAt) : null,
      response_status: row.responseStatus,
      error: row.error,
      replay_of: row.replayOf,
    }),
    body: row.body,
    created_at: time(row.createdAt),
    ...present({ ended_at: optionalTime(row.endedAt) }),
  };
}
