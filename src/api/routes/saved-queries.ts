/** Queries that people keep with a project: listed, made, changed, deleted. */
import { changeSavedQuery, createSavedQuery, deleteSavedQuery, listSavedQueries } from '../../core/saved-query.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import {
  SavedQueriesReply,
  SavedQueryCreateBody,
  SavedQueryParams,
  SavedQueryReply,
  SavedQueryUpdateBody,
} from '../schemas/saved-query.ts';
import { projectAddress } from '../views/params.ts';
import { savedQueryAddress, savedQueryView } from '../views/saved-query.ts';
import { ask, write } from './command.ts';

const tags = ['Saved queries'];
const collection = '/projects/:project_id/saved_queries';
const member = `${collection}/:saved_query_id`;

export function savedQueryRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectSavedQueries',
    summary: 'List saved queries',
    description: 'All of a project, with their texts, in the order in which they were made.',
    params: ProjectParams,
    response: { 200: SavedQueriesReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const found = await listSavedQueries(scope, caller, projectAddress(request.params).projectId);
      return { saved_queries: found.map(savedQueryView) };
    }),
  );

  const create = {
    tags,
    operationId: 'createProjectSavedQuery',
    summary: 'Save a query',
    description: 'A project has at most 100 of them.',
    params: ProjectParams,
    body: SavedQueryCreateBody,
    response: { 201: SavedQueryReply, ...errorReply },
  };
  app.post(collection, { schema: create }, (request, reply) => {
    reply.status(201);
    return write(parts, request, async (scope, caller) => {
      const { name, query, is_open: isOpen = false } = request.body.saved_query;
      const { projectId } = projectAddress(request.params);
      return { saved_query: savedQueryView(await createSavedQuery(scope, caller, projectId, { name, query, isOpen })) };
    });
  });

  changeRoutes(app, parts);
}

function changeRoutes(app: App, parts: ApiParts): void {
  const update = {
    tags,
    operationId: 'updateProjectSavedQuery',
    summary: 'Change a saved query',
    description: 'What is left out stays as it is. A change to an older `revision` is refused with 409.',
    params: SavedQueryParams,
    body: SavedQueryUpdateBody,
    response: { 200: SavedQueryReply, ...errorReply },
  };
  app.patch(member, { schema: update }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { is_open: isOpen, ...others } = request.body.saved_query;
      const changed = await changeSavedQuery(scope, caller, savedQueryAddress(request.params), { ...others, isOpen });
      return { saved_query: savedQueryView(changed) };
    }),
  );

  const remove = {
    tags,
    operationId: 'deleteProjectSavedQuery',
    summary: 'Delete a saved query',
    description: 'For good.',
    params: SavedQueryParams,
    response: { 200: SavedQueryReply, ...errorReply },
  };
  app.delete(member, { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) => ({
      saved_query: savedQueryView(await deleteSavedQuery(scope, caller, savedQueryAddress(request.params))),
    })),
  );
}
