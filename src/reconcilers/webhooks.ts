/**
 * Tells the webhooks of projects what has happened there: records events that are new, and sends what is due. What
 * fails is sent again for more than a day, and a webhook that has failed for five days is left alone. Signed as
 * Standard Webhooks has it, so that its libraries verify it. Order is not guaranteed, and an event can come twice.
 */
import { Webhook } from 'standardwebhooks';
import { type Core, readScope } from '../core/context.ts';
import { webhookSealContext } from '../core/webhook.ts';
import { recordConditions, recordEnds } from '../core/webhook-events.ts';
import { type Attempt, claimDeliveries, type DueDelivery, recordAttempt } from '../db/webhooks.ts';
import { dayMs, minuteMs } from '../lib/clock.ts';
import { errorText } from '../lib/errors.ts';
import { webhookPolicy } from '../lib/outbound.ts';
import { sendOutbound } from '../lib/outbound-request.ts';
import type { Reconciler, ReconcilerParts } from './reconciler.ts';

const everyMs = 2_000;
/** Quotas and backups are looked at less often: that reads much, and minutes do not matter to them. */
const conditionsEveryMs = 60_000;
const attemptMs = 10_000;
/** The wait after each failure; the failure after the last wait is final. */
const waitMinutes = [0.1, 1, 5, 30, 120, 300, 600, 600];
const disableAfterMs = 5 * dayMs;
/** Of one webhook at once. */
const ofEachMax = 4;
/** How far back the first turn looks, for what has ended while nobody looked. */
const firstLookSeconds = 3_600;
/** How far back any other looks beyond the last one: an operation is seen when its transaction commits. */
const overlapSeconds = 60;

export function makeWebhooks(): Reconciler {
  let lookedAt: number | null = null;
  let conditionsAt = Number.NEGATIVE_INFINITY;
  return {
    name: 'webhooks',
    everyMs,
    turn: async (parts) => {
      const begunAt = performance.now();
      const sinceSeconds = lookedAt === null ? firstLookSeconds : (begunAt - lookedAt) / 1_000 + overlapSeconds;
      const scope = readScope(parts.core);
      await recordEnds(scope, Math.ceil(sinceSeconds));
      lookedAt = begunAt;
      if (begunAt - conditionsAt >= conditionsEveryMs) {
        conditionsAt = begunAt;
        await recordConditions(scope);
      }
      await sendDue(parts);
    },
  };
}

async function sendDue({ core, log }: ReconcilerParts): Promise<void> {
  const now = core.clock.now();
  const until = new Date(now.getTime() + 2 * attemptMs);
  const due = await claimDeliveries(core.database.sql, { now, until, ofEach: ofEachMax });
  await Promise.all(
    due.map(async (delivery) => {
      const attempt = await send(core, delivery);
      await recordAttempt(core.database.sql, delivery, attempt);
      const { webhookId: webhook, eventId: event, attempts } = delivery;
      if (attempt.error !== null) {
        log.info({ webhook, event, attempts, error: attempt.error }, 'a webhook could not be told');
      }
    }),
  );
}

async function send(core: Core, delivery: DueDelivery): Promise<Attempt> {
  const { status, error } = await post(core, delivery);
  const at = core.clock.now();
  const wait = error === null ? undefined : waitMinutes[delivery.attempts - 1];
  const failingMs = at.getTime() - (delivery.failingSince ?? at).getTime();
  return {
    at,
    responseStatus: status,
    error,
    dueAt: wait === undefined ? null : new Date(at.getTime() + wait * minuteMs),
    disables: error !== null && failingMs > disableAfterMs,
  };
}

/** A redirect is a failure: it would send the event to an address that nobody has registered or checked. */
async function post(core: Core, delivery: DueDelivery): Promise<{ status: number | null; error: string | null }> {
  try {
    const secret = core.box.open(delivery.secret, webhookSealContext(delivery.webhookId));
    const now = core.clock.now();
    const reply = await sendOutbound(delivery.url, webhookPolicy(core.config), {
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Catnap',
        'webhook-id': delivery.eventId,
        'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
        'webhook-signature': new Webhook(secret).sign(delivery.eventId, now, delivery.body),
      },
      body: delivery.body,
      timeoutMs: attemptMs,
    });
    // Whatever else it says: nobody reads it, however long it is.
    reply.destroy();
    const status = reply.statusCode ?? 0;
    return { status, error: status >= 200 && status < 300 ? null : `HTTP ${status}` };
  } catch (error) {
    return { status: null, error: errorText(error).slice(0, 500) };
  }
}
