/** Webhooks of a project: listed, made, changed, deleted; what was sent to them, and sending it again. */
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listDeliveries,
  listWebhooks,
  replayDelivery,
} from '../../core/webhook.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import {
  DeliveriesQuery,
  DeliveriesReply,
  DeliveryParams,
  DeliveryReply,
  WebhookCreateBody,
  WebhookCreatedReply,
  WebhookParams,
  WebhookReply,
  WebhooksReply,
  WebhookUpdateBody,
} from '../schemas/webhook.ts';
import { projectAddress } from '../views/params.ts';
import { deliveryView, webhookAddress, webhookView } from '../views/webhook.ts';
import { ask, write } from './command.ts';

const tags = ['Webhooks'];
const collection = '/projects/:project_id/webhooks';
const member = `${collection}/:webhook_id`;

export function webhookRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectWebhooks',
    summary: 'List webhooks',
    description: 'All of a project, without their secrets.',
    params: ProjectParams,
    response: { 200: WebhooksReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const found = await listWebhooks(scope, caller, projectAddress(request.params).projectId);
      return { webhooks: found.map(webhookView) };
    }),
  );

  const create = {
    tags,
    operationId: 'createProjectWebhook',
    summary: 'Create a webhook',
    description: 'A project has at most 20. The secret is in this reply and is not shown again.',
    params: ProjectParams,
    body: WebhookCreateBody,
    response: { 201: WebhookCreatedReply, ...errorReply },
  };
  app.post(collection, { schema: create }, (request, reply) => {
    reply.status(201);
    return write(parts, request, async (scope, caller) => {
      const { url, events, enabled: isEnabled = true } = request.body.webhook;
      const { projectId } = projectAddress(request.params);
      const { webhook, secret } = await createWebhook(scope, caller, projectId, { url, events, isEnabled });
      return { webhook: webhookView(webhook), secret };
    });
  });

  changeRoutes(app, parts);
  deliveryRoutes(app, parts);
}

function changeRoutes(app: App, parts: ApiParts): void {
  const update = {
    tags,
    operationId: 'updateProjectWebhook',
    summary: 'Change a webhook',
    description: 'What is left out stays as it is. Its secret stays, too.',
    params: WebhookParams,
    body: WebhookUpdateBody,
    response: { 200: WebhookReply, ...errorReply },
  };
  app.patch(member, { schema: update }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { url, events, enabled: isEnabled } = request.body.webhook;
      const change = {
        ...(url !== undefined && { url }),
        ...(events !== undefined && { events }),
        ...(isEnabled !== undefined && { isEnabled }),
      };
      return { webhook: webhookView(await changeWebhook(scope, caller, webhookAddress(request.params), change)) };
    }),
  );

  const remove = {
    tags,
    operationId: 'deleteProjectWebhook',
    summary: 'Delete a webhook',
    description: 'With the log of its deliveries.',
    params: WebhookParams,
    response: { 200: WebhookReply, ...errorReply },
  };
  app.delete(member, { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) => ({
      webhook: webhookView(await deleteWebhook(scope, caller, webhookAddress(request.params))),
    })),
  );
}

function deliveryRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectWebhookDeliveries',
    summary: 'List deliveries of a webhook',
    description: 'What was sent to it or is to be sent, the newest first. Kept for a week.',
    params: WebhookParams,
    querystring: DeliveriesQuery,
    response: { 200: DeliveriesReply, ...errorReply },
  };
  app.get(`${member}/deliveries`, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const limit = request.query.limit ?? 100;
      const found = await listDeliveries(scope, caller, webhookAddress(request.params), limit);
      return { deliveries: found.map(deliveryView) };
    }),
  );

  const replay = {
    tags,
    operationId: 'replayProjectWebhookDelivery',
    summary: 'Send a delivery again',
    description: 'As a new delivery of the same event, whatever became of the first.',
    params: DeliveryParams,
    response: { 201: DeliveryReply, ...errorReply },
  };
  app.post(`${member}/deliveries/:delivery_id/replay`, { schema: replay }, (request, reply) => {
    reply.status(201);
    return write(parts, request, async (scope, caller) => {
      const { delivery_id: id } = request.params;
      return { delivery: deliveryView(await replayDelivery(scope, caller, webhookAddress(request.params), id)) };
    });
  });
}
