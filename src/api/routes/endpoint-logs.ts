/** What the server of a compute has logged, for the people who may see the compute. */
import { getEndpoint } from '../../core/endpoint.ts';
import type { LogEntry } from '../../lib/model.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { EndpointParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { LogsQuery, LogsReply } from '../schemas/log.ts';
import { present } from '../views/common.ts';
import { endpointAddress } from '../views/params.ts';
import { ask } from './command.ts';

const limitByDefault = 100;

export function endpointLogsRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags: ['Endpoints'],
    operationId: 'listProjectEndpointLogs',
    summary: 'What a compute has logged',
    description: 'The last entries of its server’s log, awake or not. Wakes nothing. An addition of Catnap.',
    params: EndpointParams,
    querystring: LogsQuery,
    response: { 200: LogsReply, ...errorReply },
  };
  app.get('/projects/:project_id/endpoints/:endpoint_id/logs', { schema }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, endpointId } = endpointAddress(request.params);
      await getEndpoint(scope, caller, projectId, endpointId);
      const entries = await parts.readLog({ projectId, endpointId }, request.query.limit ?? limitByDefault);
      return { logs: entries.map(entryView) };
    }),
  );
}

function entryView({ at, source, process, pid, level, message }: LogEntry) {
  return { ...present({ at, process, pid, level }), source, message };
}
