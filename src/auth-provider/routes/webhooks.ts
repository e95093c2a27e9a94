/** Registration of webhooks, by the integration that manages the project. */

import { randomBytes, randomUUID } from 'node:crypto';
import { Type } from '@fastify/type-provider-typebox';
import { refusalOfUrl } from '../../lib/outbound.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { plain } from '../http/errors.ts';
import { closed, WebUrl } from '../http/schemas.ts';
import { countWebhookEndpoints, insertWebhookEndpoint, webhookSealContext } from '../statements/webhooks.ts';
import { callerOf, guarded } from './access.ts';

const endpointsMax = 50;

const NewWebhook = Type.Object({ url: WebUrl, description: Type.Optional(Type.String({ maxLength: 1000 })) }, closed);

const both = guarded('integration+admin');

export function webhookRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  app.post(
    '/integrations/neon/webhooks',
    { ...both, schema: { ...both.schema, body: NewWebhook } },
    async (request) => {
      const { project } = callerOf(request);
      const { url, description = '' } = request.body;
      const refusal = refusalOfUrl(url, parts.webhookPolicy);
      if (refusal !== null) throw plain(400, `The url ${refusal}.`);
      if ((await countWebhookEndpoints(parts.database.sql, project.id)) >= endpointsMax) {
        throw plain(400, `A project has ${endpointsMax} webhooks at most.`);
      }
      const id = randomUUID();
      const secret = `whsec_${randomBytes(24).toString('base64')}`;
      const sealed = parts.box.seal(secret, webhookSealContext(id));
      await insertWebhookEndpoint(parts.database.sql, { id, projectId: project.id, url, description, secret: sealed });
      return { secret };
    },
  );
}
