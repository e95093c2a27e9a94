/** Registration of webhooks, by the integration that looks after the project. */
import { randomBytes, randomUUID } from 'node:crypto';
import { Type } from '@fastify/type-provider-typebox';
import type { StackApp } from '../app-type.ts';
import { callerOf, guarded } from '../http/access.ts';
import { plain } from '../http/errors.ts';
import type { StackParts } from '../parts.ts';
import { countWebhookEndpoints, insertWebhookEndpoint } from '../store/webhooks.ts';
import { closed, WebUrl } from './schemas.ts';

const endpointsMax = 50;

const NewWebhook = Type.Object({ url: WebUrl, description: Type.Optional(Type.String({ maxLength: 1000 })) }, closed);

const both = guarded('integration+admin');

/** Sealed with this, so that a row that was copied elsewhere does not open. */
export const webhookSealPlace = (endpointId: string) => `stack-webhook:${endpointId}`;

export function webhookRoutes(app: StackApp, parts: StackParts): void {
  app.post(
    '/integrations/neon/webhooks',
    { ...both, schema: { ...both.schema, body: NewWebhook } },
    async (request) => {
      const { project } = callerOf(request);
      const { url, description = '' } = request.body;
      if (!URL.canParse(url)) throw plain(400, 'The url is not a URL.');
      if ((await countWebhookEndpoints(parts.database.sql, project.id)) >= endpointsMax) {
        throw plain(400, `A project has ${endpointsMax} webhooks at most.`);
      }
      const id = randomUUID();
      const secret = `whsec_${randomBytes(24).toString('base64')}`;
      const sealed = parts.box.seal(secret, webhookSealPlace(id));
      await insertWebhookEndpoint(parts.database.sql, { id, projectId: project.id, url, description, secret: sealed });
      return { secret };
    },
  );
}
