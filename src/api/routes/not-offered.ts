/**
 * Answers for what the published API has and Catnap does not: 501 and the reason. Such a request goes the way of every
 * other one first, so that a caller learns nothing about projects that it may not see.
 */
import type { FastifyRequest } from 'fastify';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import { type NotOffered, notOffered } from '../kit/not-offered-table.ts';
import type { ApiParts } from '../kit/parts.ts';
import { requireAddressed } from './addressed.ts';

export function notOfferedRoutes(app: App, parts: ApiParts): void {
  for (const group of notOffered) {
    for (const [operationId, address] of Object.entries(group.operations)) {
      const [method = '', path = ''] = address.split(' ');
      const refuse = async (request: FastifyRequest) => {
        await requireAddressed(parts, request);
        throw new CatnapError('not_offered', refusal(operationId, group));
      };
      app.route({
        method,
        url: path.replace(/\{(\w+)\}/g, ':$1'),
        // The document of this API describes what it offers.
        schema: { hide: true, operationId },
        config: { notOffered: group },
        // Before the body is read: whatever it is, nothing would be done with it.
        onRequest: refuse,
        handler: refuse,
      });
    }
  }
}

/** neonctl looks for the words "not available", and takes any other 501 for a failure that passes. */
function refusal(operationId: string, { why, isPlanned }: NotOffered): string {
  return `${operationId} is not available: it is not offered by Catnap${isPlanned ? ' yet' : ''}; ${why}`;
}
