/** Compute endpoints: create, list, change, start, suspend, restart, delete. */

import type { Caller } from '../../core/access.ts';
import type { CommandScope } from '../../core/context.ts';
import {
  createEndpoint,
  deleteEndpoint,
  type EndpointResult,
  getEndpoint,
  listEndpoints,
  startEndpoint,
  suspendEndpoint,
} from '../../core/endpoint.ts';
import { restartEndpoint, updateEndpointOf } from '../../core/endpoint-update.ts';
import type { EndpointId, ProjectId } from '../../lib/ids.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { BranchParams, EndpointParams, ProjectParams } from '../schemas/common.ts';
import {
  EndpointCreateBody,
  EndpointOperationsReply,
  EndpointReply,
  EndpointsReply,
  EndpointUpdateBody,
} from '../schemas/endpoint.ts';
import { errorReply } from '../schemas/error.ts';
import { endpointChanges, endpointInput, endpointView } from '../views/endpoint.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress, endpointAddress, projectAddress } from '../views/params.ts';
import { ask, write } from './command.ts';
import { requireDriver } from './good-driver.ts';
import { requireGoodSettingsIn, requireLoadableIn } from './good-settings.ts';

const tags = ['Endpoints'];
const collection = '/projects/:project_id/endpoints';
const member = `${collection}/:endpoint_id`;

export function endpointRoutes(app: App, parts: ApiParts): void {
  const { config } = parts;
  listRoutes(app, parts);

  const create = {
    tags,
    operationId: 'createProjectEndpoint',
    summary: 'Create a compute',
    description: 'It starts by itself. A branch has one read-write compute at most.',
    params: ProjectParams,
    body: EndpointCreateBody,
    response: { 201: EndpointOperationsReply, ...errorReply },
  };
  app.post(collection, { schema: create }, async (request, reply) => {
    reply.status(201);
    const { projectId } = projectAddress(request.params);
    requireDriver(config, { endpoints: [request.body.endpoint] });
    await requireGoodSettingsIn(parts, request, projectId, settingsOf(request.body.endpoint));
    await requireLoadableIn(parts, request, projectId, librariesOf(request.body.endpoint));
    return write(parts, request, async (scope, caller) => {
      return resultView(parts, await createEndpoint(scope, caller, projectId, endpointInput(request.body)));
    });
  });

  const get = {
    tags,
    operationId: 'getProjectEndpoint',
    summary: 'Get a compute',
    description: 'Its host, size, settings and state.',
    params: EndpointParams,
    response: { 200: EndpointReply, ...errorReply },
  };
  app.get(member, { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, endpointId } = endpointAddress(request.params);
      return { endpoint: endpointView(config, await getEndpoint(scope, caller, projectId, endpointId)) };
    }),
  );

  const change = {
    tags,
    operationId: 'updateProjectEndpoint',
    summary: 'Change a compute',
    description:
      'A new size restarts it once and drops its connections; settings are reloaded where that is enough. ' +
      'Another `branch_id` moves it: it ends asleep and serves the new branch from the next connection on.',
    params: EndpointParams,
    body: EndpointUpdateBody,
    response: { 200: EndpointOperationsReply, ...errorReply },
  };
  app.patch(member, { schema: change }, async (request) => {
    const address = endpointAddress(request.params);
    await requireGoodSettingsIn(parts, request, address.projectId, settingsOf(request.body.endpoint));
    await requireLoadableIn(parts, request, address.projectId, librariesOf(request.body.endpoint));
    return write(parts, request, async (scope, caller) =>
      resultView(parts, await updateEndpointOf(scope, caller, address, endpointChanges(request.body))),
    );
  });

  const remove = {
    tags,
    operationId: 'deleteProjectEndpoint',
    summary: 'Delete a compute',
    description: 'Drops its connections. The branch keeps its data; a compute made later has another host.',
    params: EndpointParams,
    response: { 200: EndpointOperationsReply, ...errorReply },
  };
  app.delete(member, { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { projectId, endpointId } = endpointAddress(request.params);
      return resultView(parts, await deleteEndpoint(scope, caller, projectId, endpointId));
    }),
  );

  actionRoute(app, parts, {
    name: 'start',
    operationId: 'startProjectEndpoint',
    summary: 'Wake a compute',
    description: 'Does nothing when it is awake. Connecting to it wakes it as well.',
    run: startEndpoint,
  });
  actionRoute(app, parts, {
    name: 'suspend',
    operationId: 'suspendProjectEndpoint',
    summary: 'Put a compute to sleep',
    description: 'Drops its connections. Does nothing when it naps already.',
    run: suspendEndpoint,
  });
  actionRoute(app, parts, {
    name: 'restart',
    operationId: 'restartProjectEndpoint',
    summary: 'Restart a compute',
    description: 'Only while it is active. Drops its connections; a newer build and new plan limits apply after it.',
    run: restartEndpoint,
  });
}

function listRoutes(app: App, parts: ApiParts): void {
  const { config } = parts;
  const ofProject = {
    tags,
    operationId: 'listProjectEndpoints',
    summary: 'List the computes of a project',
    description: 'All of them, of every branch.',
    params: ProjectParams,
    response: { 200: EndpointsReply, ...errorReply },
  };
  app.get(collection, { schema: ofProject }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const rows = await listEndpoints(scope, caller, projectAddress(request.params).projectId);
      return { endpoints: rows.map((row) => endpointView(config, row)) };
    }),
  );

  const ofBranch = {
    tags,
    operationId: 'listProjectBranchEndpoints',
    summary: 'List the computes of a branch',
    description: 'The read-write compute and the read replicas.',
    params: BranchParams,
    response: { 200: EndpointsReply, ...errorReply },
  };
  app.get('/projects/:project_id/branches/:branch_id/endpoints', { schema: ofBranch }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      const rows = await listEndpoints(scope, caller, projectId, branchId);
      return { endpoints: rows.map((row) => endpointView(config, row)) };
    }),
  );
}

interface Action {
  readonly name: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  run(scope: CommandScope, caller: Caller, projectId: ProjectId, id: EndpointId): Promise<EndpointResult>;
}

function actionRoute(app: App, parts: ApiParts, action: Action): void {
  const { operationId, summary, description } = action;
  const response = { 200: EndpointOperationsReply, ...errorReply };
  const schema = { tags, operationId, summary, description, params: EndpointParams, response };
  app.post(`${member}/${action.name}`, { schema }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { projectId, endpointId } = endpointAddress(request.params);
      return resultView(parts, await action.run(scope, caller, projectId, endpointId));
    }),
  );
}

const settingsOf = (endpoint: { settings?: { pg_settings?: Record<string, string> } }) => ({
  settings: endpoint.settings?.pg_settings,
  field: 'body.endpoint.settings.pg_settings',
});

const librariesOf = (endpoint: { settings?: { preload_libraries?: { enabled_libraries?: string[] } } }) => ({
  chosen: endpoint.settings?.preload_libraries,
  field: 'body.endpoint.settings.preload_libraries',
});

function resultView(parts: ApiParts, result: EndpointResult) {
  return { endpoint: endpointView(parts.config, result.endpoint), operations: operationViews(result.operations) };
}
