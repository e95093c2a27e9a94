/** Mails of the embedded auth provider, for the operator: they hold codes that sign their reader in. */

import { listOutbox } from '../../auth-provider/core/outbox.ts';
import { requireOperator } from '../../core/account.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { OutboxQuery, OutboxReply } from '../schemas/auth.ts';
import { errorReply } from '../schemas/error.ts';
import { outboxMailView } from '../views/auth.ts';
import { ask } from './command.ts';

export function outboxRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags: ['Account'],
    operationId: 'listOutbox',
    summary: 'List mails of the auth provider',
    description: 'The newest first. For personal keys of the operator. With CATNAP_SMTP_URL they are also sent.',
    querystring: OutboxQuery,
    response: { 200: OutboxReply, ...errorReply },
  };
  app.get('/outbox', { schema }, (request) =>
    ask(parts, request, async (scope, caller) => {
      await requireOperator(scope, caller);
      const { limit = 20, before } = request.query;
      return { mails: (await listOutbox(parts.authProvider, { limit, before })).map(outboxMailView) };
    }),
  );
}
