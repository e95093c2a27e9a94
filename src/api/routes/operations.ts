/** Operations: what a project's writes have queued. */
import { getOperation, listOperations } from '../../core/operation.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { OperationParams, OperationReply, OperationsQuery, OperationsReply } from '../schemas/operation.ts';
import { operationsPage, operationsView, operationView } from '../views/operation.ts';
import { operationAddress, projectAddress } from '../views/params.ts';
import { ask } from './command.ts';

export function operationRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags: ['Operations'],
    operationId: 'listProjectOperations',
    summary: 'List operations',
    description: 'The newest first. Operations are kept for half a year.',
    params: ProjectParams,
    querystring: OperationsQuery,
    response: { 200: OperationsReply, ...errorReply },
  };
  app.get('/projects/:project_id/operations', { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId } = projectAddress(request.params);
      return operationsView(await listOperations(scope, caller, projectId, operationsPage(request.query)));
    }),
  );

  const get = {
    tags: ['Operations'],
    operationId: 'getProjectOperation',
    summary: 'Get an operation',
    description: 'Poll this until the status is final.',
    params: OperationParams,
    response: { 200: OperationReply, ...errorReply },
  };
  app.get('/projects/:project_id/operations/:operation_id', { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, operationId } = operationAddress(request.params);
      return { operation: operationView(await getOperation(scope, caller, projectId, operationId)) };
    }),
  );
}
