/** The sessions of a compute: what its server does right now, and how to make one of them stop. */
import { listSessions, type SessionSignal, signalSession } from '../../core/session.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { EndpointParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { SessionParams, SessionSignalReply, SessionsReply } from '../schemas/session.ts';
import { endpointAddress } from '../views/params.ts';
import { sessionView } from '../views/session.ts';
import { ask, writeOutside } from './command.ts';

const tags = ['Endpoints'];
const collection = '/projects/:project_id/endpoints/:endpoint_id/sessions';

const signals: readonly { how: SessionSignal; operationId: string; summary: string; description: string }[] = [
  {
    how: 'cancel',
    operationId: 'cancelProjectEndpointSession',
    summary: 'Cancel what a session runs',
    description: 'The statement ends with an error; the session stays. An addition of Catnap.',
  },
  {
    how: 'terminate',
    operationId: 'terminateProjectEndpointSession',
    summary: 'End a session',
    description: 'Its connection is closed and its transaction rolled back. An addition of Catnap.',
  },
];

export function sessionRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectEndpointSessions',
    summary: 'List the sessions of a compute',
    description: 'What each does and whom it waits for. Wakes nothing, and keeps nothing awake. An addition of Catnap.',
    params: EndpointParams,
    response: { 200: SessionsReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const found = await listSessions(scope, caller, endpointAddress(request.params), parts.sessions);
      const readAt = parts.clock.now().toISOString();
      return { is_awake: found !== null, read_at: readAt, sessions: (found ?? []).map(sessionView) };
    }),
  );

  for (const { how, operationId, summary, description } of signals) {
    const schema = {
      tags,
      operationId,
      summary,
      description,
      params: SessionParams,
      response: { 200: SessionSignalReply, ...errorReply },
    };
    app.post(`${collection}/:session_id/${how}`, { schema }, (request) =>
      writeOutside(parts, request, async (scope, caller) => {
        const session = { id: request.params.session_id, how };
        await signalSession(scope, caller, endpointAddress(request.params), session, parts.sessions);
        return {};
      }),
    );
  }
}
