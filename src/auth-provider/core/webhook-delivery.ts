/**
 * Sends changes of users to the webhooks of their project, signed like those of Svix: any of its libraries verifies
 * them. A message that fails is retried for more than a day, and an endpoint that has failed for five days is left
 * alone. Order is not guaranteed.
 */
import { Webhook } from 'standardwebhooks';
import { errorText } from '../../lib/errors.ts';
import { sendOutbound } from '../../lib/outbound-request.ts';
import {
  claimMessage,
  markDelivered,
  markFailed,
  type WebhookMessageRow,
  webhookSealContext,
} from '../statements/webhooks.ts';
import type { AuthProviderParts } from './parts.ts';

const attemptMs = 15_000;
const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
/** The wait after each failure; the failure after the last wait is final. */
const waitsMs = [5 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs, 10 * hourMs];
const disableAfterMs = 5 * 24 * hourMs;

/** Sends one message, if one is due. `onClaimed` is called before it is sent: there may be another. */
export async function deliverNextMessage(parts: AuthProviderParts, onClaimed = () => {}): Promise<boolean> {
  const { sql } = parts.database;
  const begunAt = parts.clock.now();
  const message = await claimMessage(sql, begunAt, new Date(begunAt.getTime() + 2 * attemptMs));
  if (message === undefined) return false;
  onClaimed();
  const error = await send(parts, message);
  const at = parts.clock.now();
  if (error === null) {
    await markDelivered(sql, message, at);
    return true;
  }
  const waitMs = waitsMs[message.attempts - 1];
  const failingSince = message.failingSince ?? at;
  await markFailed(sql, message, {
    error,
    at,
    dueAt: waitMs === undefined ? null : new Date(at.getTime() + waitMs),
    disables: at.getTime() - failingSince.getTime() > disableAfterMs,
  });
  return true;
}

async function send(parts: AuthProviderParts, message: WebhookMessageRow): Promise<string | null> {
  try {
    const secret = parts.box.open(message.secret, webhookSealContext(message.endpointId));
    // Checked again with each message: a name may lead elsewhere by now. A redirect is a failure, since it would send
    // the users' data to an address that is not registered.
    const reply = await sendOutbound(message.url, parts.webhookPolicy, {
      headers: { 'content-type': 'application/json', ...signatureHeaders(parts, message, secret) },
      body: message.body,
      timeoutMs: attemptMs,
    });
    reply.destroy();
    const status = reply.statusCode ?? 0;
    return status >= 200 && status < 300 ? null : `HTTP ${status}`;
  } catch (error) {
    return errorText(error).slice(0, 500);
  }
}

function signatureHeaders(
  parts: AuthProviderParts,
  message: WebhookMessageRow,
  secret: string,
): Record<string, string> {
  const id = `msg_${message.id.replaceAll('-', '')}`;
  const now = parts.clock.now();
  return {
    'svix-id': id,
    'svix-timestamp': String(Math.floor(now.getTime() / 1000)),
    'svix-signature': new Webhook(secret).sign(id, now, message.body),
  };
}
