/** The webhooks of a project: where its events are sent to, and the log of what was sent. */
import { randomBytes, randomUUID } from 'node:crypto';
import {
  deleteWebhookRow,
  insertDeliveries,
  insertWebhook,
  selectDeliveries,
  selectDeliveryOf,
  selectWebhook,
  selectWebhooks,
  updateWebhook,
  type WebhookDeliveryRow,
  type WebhookEvent,
  type WebhookRow,
} from '../db/webhooks.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import { newWebhookId, type ProjectId, type WebhookId } from '../lib/ids.ts';
import { refusalOfUrl, webhookPolicy } from '../lib/outbound.ts';
import { type Caller, requireProject, requireProjectLocked } from './access.ts';
import type { CommandScope, Scope } from './context.ts';

export { webhookEvents } from '../db/webhooks.ts';

export type Webhook = Omit<WebhookRow, 'secret'>;
export type WebhookDelivery = WebhookDeliveryRow;

const perProjectMax = 20;
const secretBytes = 24;

/** The context that a webhook's secret is sealed with. */
export const webhookSealContext = (id: WebhookId) => `webhook:${id}`;

export interface WebhookAddress {
  readonly projectId: ProjectId;
  readonly webhookId: WebhookId;
}

export interface WebhookInput {
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  readonly isEnabled: boolean;
}

export async function listWebhooks(scope: Scope, caller: Caller, projectId: ProjectId): Promise<Webhook[]> {
  await requireProject(scope, caller, projectId);
  return selectWebhooks(scope.sql, projectId);
}

/** The secret is in this one reply and never again. It has the form that libraries for Standard Webhooks take. */
export async function createWebhook(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  input: WebhookInput,
): Promise<{ readonly webhook: Webhook; readonly secret: string }> {
  await requireProjectLocked(scope, caller, projectId);
  requireUrl(scope, input.url);
  if ((await selectWebhooks(scope.tx, projectId)).length >= perProjectMax) {
    throw new CatnapError('unprocessable', withDetails('webhooks limit exceeded', { limit: perProjectMax }));
  }
  const id = newWebhookId();
  const secret = `whsec_${randomBytes(secretBytes).toString('base64')}`;
  const sealed = scope.box.seal(secret, webhookSealContext(id));
  return { webhook: await insertWebhook(scope.tx, { ...input, id, projectId, secret: sealed }), secret };
}

export async function changeWebhook(
  scope: CommandScope,
  caller: Caller,
  address: WebhookAddress,
  { url, events, isEnabled }: Partial<WebhookInput>,
): Promise<Webhook> {
  await requireProjectLocked(scope, caller, address.projectId);
  const found = await requireWebhook(scope, address);
  if (url !== undefined) requireUrl(scope, url);
  return updateWebhook(scope.tx, found.id, {
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events }),
    // Whoever turns it on again has mended something.
    ...(isEnabled !== undefined && { isEnabled, ...(isEnabled && !found.isEnabled && { failingSince: null }) }),
  });
}

export async function deleteWebhook(scope: CommandScope, caller: Caller, address: WebhookAddress): Promise<Webhook> {
  await requireProjectLocked(scope, caller, address.projectId);
  const found = await requireWebhook(scope, address);
  await deleteWebhookRow(scope.tx, found.id);
  return found;
}

/** The newest first. */
export async function listDeliveries(
  scope: Scope,
  caller: Caller,
  address: WebhookAddress,
  limit: number,
): Promise<WebhookDelivery[]> {
  await requireProject(scope, caller, address.projectId);
  const { id } = await requireWebhook(scope, address);
  return selectDeliveries(scope.sql, id, limit);
}

/** Sends the same event once more, under the same id, as a delivery of its own. */
export async function replayDelivery(
  scope: CommandScope,
  caller: Caller,
  address: WebhookAddress,
  deliveryId: string,
): Promise<WebhookDelivery> {
  await requireProjectLocked(scope, caller, address.projectId);
  const webhook = await requireWebhook(scope, address);
  const old = await selectDeliveryOf(scope.tx, webhook.id, deliveryId);
  if (old === undefined) throw notFound('delivery');
  if (!webhook.isEnabled) throw new CatnapError('precondition_failed', 'the webhook is not enabled');
  const { eventId, event, body } = old;
  const now = scope.clock.now();
  const id = randomUUID();
  const repeated = { id, webhookId: webhook.id, eventId, event, body, replayOf: old.id, dueAt: now, createdAt: now };
  await insertDeliveries(scope.tx, [repeated]);
  const made = await selectDeliveryOf(scope.tx, webhook.id, id);
  if (made === undefined) throw notFound('delivery');
  return made;
}

function requireUrl({ config }: Scope, url: string): void {
  const refusal = refusalOfUrl(url, webhookPolicy(config));
  if (refusal !== null) throw invalid(`invalid request: body.webhook.url ${refusal}`);
}

async function requireWebhook(scope: Scope, { projectId, webhookId }: WebhookAddress): Promise<WebhookRow> {
  const found = await selectWebhook(scope.sql, projectId, webhookId);
  if (found === undefined) throw notFound('webhook');
  return found;
}
