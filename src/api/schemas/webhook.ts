/** Webhooks of a project, and the log of their deliveries. */
import { Type } from 'typebox';
import { webhookEvents } from '../../core/webhook.ts';
import { closed, count, idOf, ref, time } from './common.ts';

const url = Type.String({
  minLength: 1,
  maxLength: 2_048,
  description: 'Where events are sent to, by POST. https, and no private address unless the operator allows them.',
});
const event = Type.Enum([...webhookEvents], { description: 'What has happened.' });
const events = Type.Array(event, {
  minItems: 1,
  maxItems: webhookEvents.length,
  uniqueItems: true,
  description: 'What it is told of.',
});
const enabled = Type.Boolean({ description: 'Whether events are sent to it.' });
const deliveryId = Type.String({ format: 'uuid', description: 'Id of the delivery.' });

export const Webhook = Type.Object(
  {
    id: idOf('webhook'),
    project_id: idOf('project'),
    url,
    events,
    enabled,
    failing_since: Type.Optional(
      time('Since when nothing could be delivered; absent while all is well. After five days it is turned off.'),
    ),
    created_at: time('When it was made.'),
    updated_at: time('When it was last changed.'),
  },
  { $id: 'Webhook', description: 'An address that is told of events of the project. An addition of Catnap’s.' },
);

export const WebhookDelivery = Type.Object(
  {
    id: deliveryId,
    event_id: Type.String({ description: 'Names what has happened; a replay has the same. Sent as `webhook-id`.' }),
    event,
    status: Type.Enum(['pending', 'delivered', 'failed'], { description: 'Whether it will be tried again.' }),
    attempts: count('How often it was sent.'),
    next_attempt_at: Type.Optional(time('When it is sent again.')),
    response_status: Type.Optional(Type.Integer({ description: 'Status of the last reply; absent without one.' })),
    error: Type.Optional(Type.String({ description: 'Why the last attempt failed.' })),
    replay_of: Type.Optional(Type.String({ format: 'uuid', description: 'The delivery that this one repeats.' })),
    body: Type.String({ description: 'What was sent, byte for byte: JSON, as text.' }),
    created_at: time('When it was recorded.'),
    ended_at: Type.Optional(time('When it was delivered, or given up.')),
  },
  { $id: 'WebhookDelivery', description: 'One event for one webhook. An addition of Catnap’s.' },
);

export const WebhookParams = Type.Object({ project_id: idOf('project'), webhook_id: idOf('webhook') });
export const DeliveryParams = Type.Object({
  project_id: idOf('project'),
  webhook_id: idOf('webhook'),
  delivery_id: deliveryId,
});
export const DeliveriesQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 100, description: 'At most this many.' })),
});

export const WebhooksReply = Type.Object({ webhooks: Type.Array(ref(Webhook)) });
export const WebhookReply = Type.Object({ webhook: ref(Webhook) });
export const WebhookCreatedReply = Type.Object({
  webhook: ref(Webhook),
  secret: Type.String({ description: 'What deliveries are signed with. It is not shown again.' }),
});
export const DeliveriesReply = Type.Object({ deliveries: Type.Array(ref(WebhookDelivery)) });
export const DeliveryReply = Type.Object({ delivery: ref(WebhookDelivery) });

export const WebhookCreateBody = Type.Object(
  { webhook: Type.Object({ url, events, enabled: Type.Optional(enabled) }, closed) },
  closed,
);
export const WebhookUpdateBody = Type.Object(
  {
    webhook: Type.Object(
      { url: Type.Optional(url), events: Type.Optional(events), enabled: Type.Optional(enabled) },
      closed,
    ),
  },
  closed,
);
