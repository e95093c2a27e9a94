/** The libraries that the server of a compute can be told to load when it starts. */
import { Type } from 'typebox';
import { librariesWith } from '../../core/endpoint-settings.ts';
import { getProject } from '../../core/project.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { projectAddress } from '../views/params.ts';
import { ask } from './command.ts';

const LibrariesReply = Type.Object({
  libraries: Type.Array(
    Type.Object({
      library_name: Type.String({ description: 'As `settings.preload_libraries` takes it.' }),
      description: Type.String({ description: 'What it is for.' }),
      is_default: Type.Boolean({ description: 'Loaded unless `use_defaults` is false.' }),
      is_experimental: Type.Boolean({ description: 'Always false.' }),
      version: Type.String({ description: 'The build of Postgres that it comes with.' }),
    }),
  ),
});

export function preloadLibraryRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags: ['Projects'],
    operationId: 'getAvailablePreloadLibraries',
    summary: 'List libraries that a compute can load',
    description: 'Those that `settings.preload_libraries` takes, and that the Postgres of this project has.',
    params: ProjectParams,
    response: { 200: LibrariesReply, ...errorReply },
  };
  app.get('/projects/:project_id/available_preload_libraries', { schema }, async (request) => {
    const { projectId } = projectAddress(request.params);
    const { project } = await ask(parts, request, (scope, caller) => getProject(scope, caller, projectId));
    const { pgVersion } = project;
    // A Postgres that the operator has brought (`CATNAP_PG_BIN_<major>`) may come without them, so it is asked itself.
    const known = librariesWith(parts.config.extensions);
    const problems = await Promise.all(
      known.map(({ name }) => parts.checkSettings(pgVersion, { shared_preload_libraries: name })),
    );
    const loadable = known.filter((_, index) => problems[index] === null);
    return {
      libraries: loadable.map(({ name, description, isDefault }) => ({
        library_name: name,
        description,
        is_default: isDefault,
        is_experimental: false,
        version: parts.config.releases[pgVersion] ?? String(pgVersion),
      })),
    };
  });
}
