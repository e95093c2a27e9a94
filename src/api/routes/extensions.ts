/** Which extensions a project's servers have for owners, and which not and why; an addition of ours. */
import { Type } from 'typebox';
import { getProject } from '../../core/project.ts';
import type { ExtensionFact } from '../../lib/model.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { projectAddress } from '../views/params.ts';
import { ask } from './command.ts';

const ExtensionsReply = Type.Object({
  extensions: Type.Array(
    Type.Object({
      name: Type.String({ description: 'As `CREATE EXTENSION` takes it.' }),
      version: Type.Optional(Type.String({ description: 'The version that would be created.' })),
      comment: Type.String({ description: 'What it is for, in its own words.' }),
      origin: Type.String({ description: '`Catnap`, or the folder of the machine that has its files.' }),
      offered: Type.Boolean({ description: 'Whether the owner of a database can create it.' }),
      reason: Type.Optional(Type.String({ description: 'Why it is not offered.' })),
    }),
  ),
  note: Type.Optional(Type.String({ description: 'Why there may be other extensions than the listed ones.' })),
});

export function extensionRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags: ['Projects'],
    operationId: 'listProjectExtensions',
    summary: 'List extensions',
    description:
      'The extensions of this project’s version of Postgres: those that owners can create, and those that are on the ' +
      'machine and are not offered, with the reason. It wakes no compute.',
    params: ProjectParams,
    response: { 200: ExtensionsReply, ...errorReply },
  };
  app.get('/projects/:project_id/extensions', { schema }, async (request) => {
    const { projectId } = projectAddress(request.params);
    const { project } = await ask(parts, request, (scope, caller) => getProject(scope, caller, projectId));
    const { extensions, note } = await parts.listExtensions(project.pgVersion);
    return { extensions: extensions.map(extensionView), ...(note !== null && { note }) };
  });
}

function extensionView({ name, version, comment, origin, isOffered, reason }: ExtensionFact) {
  const known = { ...(version !== null && { version }), ...(reason !== null && { reason }) };
  return { name, comment, origin, offered: isOffered, ...known };
}
