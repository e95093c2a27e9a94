/** Projects, and the connection strings of one. */
import { getConnectionUri } from '../../core/connection.ts';
import { deleteProject, getProject, listProjects, updateProjectOf } from '../../core/project.ts';
import { createProject, defaultPgVersion } from '../../core/project-create.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams } from '../schemas/common.ts';
import { ConnectionUriQuery, ConnectionUriReply } from '../schemas/connection-uri.ts';
import { errorReply } from '../schemas/error.ts';
import {
  ProjectCreateReply,
  ProjectOperationsReply,
  ProjectReply,
  ProjectsQuery,
  ProjectsReply,
  ProjectUpdateBody,
  projectCreateBody,
  SharedProjectsQuery,
  SharedProjectsReply,
} from '../schemas/project.ts';
import { connectionUriInput } from '../views/connection-uri.ts';
import { operationViews } from '../views/operation.ts';
import { projectAddress } from '../views/params.ts';
import {
  createdProjectView,
  ownedProjectView,
  projectChange,
  projectInput,
  projectPage,
  projectsView,
  projectView,
} from '../views/project.ts';
import { ask, write } from './command.ts';
import { requireNetwork } from './good-network.ts';
import { requireGoodSettings, requireGoodSettingsIn, requireLoadable, requireLoadableIn } from './good-settings.ts';

const tags = ['Projects'];

const settingsOf = (project: { default_endpoint_settings?: { pg_settings?: Record<string, string> } }) => ({
  settings: project.default_endpoint_settings?.pg_settings,
  field: 'body.project.default_endpoint_settings.pg_settings',
});

const librariesOf = (project: { settings?: { preload_libraries?: { enabled_libraries?: string[] } } }) => ({
  chosen: project.settings?.preload_libraries,
  field: 'body.project.settings.preload_libraries',
});

export function projectRoutes(app: App, parts: ApiParts): void {
  const { config, clock } = parts;
  listRoutes(app, parts);
  changeRoutes(app, parts);

  const create = {
    tags,
    operationId: 'createProject',
    summary: 'Create a project',
    description:
      'Makes the project with its first branch, database, role and compute, and answers before the compute is up. ' +
      'The reply has the connection string, with the password.',
    body: projectCreateBody(config.pgVersions),
    response: { 201: ProjectCreateReply, ...errorReply },
  };
  app.post('/projects', { schema: create }, async (request, reply) => {
    reply.status(201);
    const { pg_version: pgVersion = defaultPgVersion } = request.body.project;
    requireNetwork(config, request.body.project.settings);
    await requireGoodSettings(parts, pgVersion, settingsOf(request.body.project));
    await requireLoadable(parts, pgVersion, librariesOf(request.body.project));
    return write(parts, request, async (scope, caller) =>
      createdProjectView(config, await createProject(scope, caller, projectInput(request.body)), clock.now()),
    );
  });

  const get = {
    tags,
    operationId: 'getProject',
    summary: 'Get a project',
    description: 'The whole record, with its owner.',
    params: ProjectParams,
    response: { 200: ProjectReply, ...errorReply },
  };
  app.get('/projects/:project_id', { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const found = await getProject(scope, caller, projectAddress(request.params).projectId);
      return { project: ownedProjectView(config, found, clock.now()) };
    }),
  );

  const uri = {
    tags,
    operationId: 'getConnectionURI',
    summary: 'Get a connection string',
    description: 'For one role and database, with the password in it. Needs a project that stores passwords.',
    params: ProjectParams,
    querystring: ConnectionUriQuery,
    response: { 200: ConnectionUriReply, ...errorReply },
  };
  app.get('/projects/:project_id/connection_uri', { schema: uri }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId } = projectAddress(request.params);
      return { uri: await getConnectionUri(scope, caller, projectId, connectionUriInput(request.query)) };
    }),
  );
}

function changeRoutes(app: App, parts: ApiParts): void {
  const { config, clock } = parts;
  const update = {
    tags,
    operationId: 'updateProject',
    summary: 'Change a project',
    description: 'What is left out stays as it is. Defaults for computes touch only computes that are made later.',
    params: ProjectParams,
    body: ProjectUpdateBody,
    response: { 200: ProjectOperationsReply, ...errorReply },
  };
  app.patch('/projects/:project_id', { schema: update }, async (request) => {
    const { projectId } = projectAddress(request.params);
    requireNetwork(config, request.body.project.settings);
    await requireGoodSettingsIn(parts, request, projectId, settingsOf(request.body.project));
    await requireLoadableIn(parts, request, projectId, librariesOf(request.body.project));
    return write(parts, request, async (scope, caller) => {
      const changed = await updateProjectOf(scope, caller, projectId, projectChange(request.body));
      return {
        project: projectView(config, changed.project, clock.now()),
        operations: operationViews(changed.operations),
      };
    });
  });

  const remove = {
    tags,
    operationId: 'deleteProject',
    summary: 'Delete a project',
    description:
      'Stops its computes. It is gone from every list at once, and can be recovered for some days; then its data is ' +
      'removed.',
    params: ProjectParams,
    response: { 200: ProjectReply, ...errorReply },
  };
  app.delete('/projects/:project_id', { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) => {
      const deleted = await deleteProject(scope, caller, projectAddress(request.params).projectId);
      return { project: projectView(config, deleted, clock.now()) };
    }),
  );
}

function listRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjects',
    summary: 'List projects',
    description: 'Those that the key reaches, in pages. A key that reaches several organizations must name one.',
    querystring: ProjectsQuery,
    response: { 200: ProjectsReply, ...errorReply },
  };
  app.get('/projects', { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) =>
      projectsView(parts.config, await listProjects(scope, caller, projectPage(request.query)), parts.clock.now()),
    ),
  );

  const shared = {
    tags,
    operationId: 'listSharedProjects',
    summary: 'List shared projects',
    description: 'Always empty: projects cannot be shared with people outside their organization.',
    querystring: SharedProjectsQuery,
    response: { 200: SharedProjectsReply, ...errorReply },
  };
  app.get('/projects/shared', { schema: shared, config: { absent: 'list' } }, async () => ({ projects: [] }));
}
