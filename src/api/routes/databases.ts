/** Databases of a branch. */
import {
  createDatabase,
  type DatabaseChange,
  deleteDatabase,
  getDatabase,
  listDatabases,
  updateDatabaseOf,
} from '../../core/database.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { BranchParams } from '../schemas/common.ts';
import {
  DatabaseCreateBody,
  DatabaseOperationsReply,
  DatabaseParams,
  DatabaseReply,
  DatabasesReply,
  DatabaseUpdateBody,
} from '../schemas/database.ts';
import { errorReply } from '../schemas/error.ts';
import { databaseChange, databaseInput, databaseView } from '../views/database.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress, databaseAddress } from '../views/params.ts';
import { ask, write } from './command.ts';

const tags = ['Databases'];
const collection = '/projects/:project_id/branches/:branch_id/databases';
const member = `${collection}/:database_name`;

export function databaseRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectBranchDatabases',
    summary: 'List databases',
    description: 'All databases of the branch.',
    params: BranchParams,
    response: { 200: DatabasesReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      return { databases: (await listDatabases(scope, caller, projectId, branchId)).map(databaseView) };
    }),
  );

  const create = {
    tags,
    operationId: 'createProjectBranchDatabase',
    summary: 'Create a database',
    description: 'Owned by a role that exists already.',
    params: BranchParams,
    body: DatabaseCreateBody,
    response: { 201: DatabaseOperationsReply, ...errorReply },
  };
  app.post(collection, { schema: create }, async (request, reply) => {
    reply.status(201);
    return write(parts, request, async (scope, caller) =>
      changeView(await createDatabase(scope, caller, databaseInput(request.params, request.body))),
    );
  });

  const get = {
    tags,
    operationId: 'getProjectBranchDatabase',
    summary: 'Get a database',
    description: 'By its name.',
    params: DatabaseParams,
    response: { 200: DatabaseReply, ...errorReply },
  };
  app.get(member, { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) => ({
      database: databaseView(await getDatabase(scope, caller, databaseAddress(request.params))),
    })),
  );
  changeRoutes(app, parts);
}

function changeRoutes(app: App, parts: ApiParts): void {
  const update = {
    tags,
    operationId: 'updateProjectBranchDatabase',
    summary: 'Change a database',
    description: 'Its name, its owner, or both.',
    params: DatabaseParams,
    body: DatabaseUpdateBody,
    response: { 200: DatabaseOperationsReply, ...errorReply },
  };
  app.patch(member, { schema: update }, (request) =>
    write(parts, request, async (scope, caller) => {
      const change = databaseChange(request.body);
      return changeView(await updateDatabaseOf(scope, caller, databaseAddress(request.params), change));
    }),
  );

  const remove = {
    tags,
    operationId: 'deleteProjectBranchDatabase',
    summary: 'Delete a database',
    description: 'With everything in it.',
    params: DatabaseParams,
    response: { 200: DatabaseOperationsReply, ...errorReply },
  };
  app.delete(member, { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) =>
      changeView(await deleteDatabase(scope, caller, databaseAddress(request.params))),
    ),
  );
}

function changeView(change: DatabaseChange) {
  return { database: databaseView(change.database), operations: operationViews(change.operations) };
}
