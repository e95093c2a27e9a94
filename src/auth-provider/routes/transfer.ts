/** Transfer of ownership: the control plane requests a link, the person who opens it confirms. */
import { Type } from '@fastify/type-provider-typebox';
import { internalProjectId, projectIdOnWire } from '../core/internal-project.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { confirmTransfer, requireTransferable, requireTransferCode, startTransfer } from '../core/projects.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known } from '../http/errors.ts';
import { closed, Uuid } from '../http/schemas.ts';
import { callerOf, clientOf, guarded, requireSignedIn } from './access.ts';

const ProjectQuery = Type.Object({ project_id: Uuid });
const ProjectBody = Type.Object({ project_id: Uuid }, closed);
const CodeBody = Type.Object({ code: Type.String({ minLength: 1, maxLength: 200 }) }, closed);

const integration = guarded('integration');
const client = guarded('client');

export function transferRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  for (const family of ['neon', 'custom']) {
    const path = `/integrations/${family}/projects/transfer`;

    app.get(path, { ...integration, schema: { ...integration.schema, querystring: ProjectQuery } }, async (request) => {
      await requireTransferable(parts, request.query.project_id, clientOf(request));
      return { message: 'This project can be transferred.' };
    });

    for (const start of [path, `${path}/initiate`]) {
      app.post(start, { ...integration, schema: { ...integration.schema, body: ProjectBody } }, async (request) => {
        const project = await requireTransferable(parts, request.body.project_id, clientOf(request));
        return { confirmation_url: await startTransfer(parts, project.id) };
      });
    }

    app.post(`${path}/confirm/check`, { ...client, schema: { ...client.schema, body: CodeBody } }, async (request) => {
      requireInternal(callerOf(request).project.id);
      await requireTransferCode(parts, request.body.code);
      return { is_code_valid: true };
    });

    app.post(`${path}/confirm`, { ...client, schema: { ...client.schema, body: CodeBody } }, async (request) => {
      const caller = callerOf(request);
      requireInternal(caller.project.id);
      const user = await requireSignedIn(parts, caller);
      const project = await confirmTransfer(parts, request.body.code, user);
      return { project_id: projectIdOnWire(project.id) };
    });
  }
}

/** Owners are users of the provider's own project. */
function requireInternal(projectId: string): void {
  if (projectId === internalProjectId) return;
  throw known('CURRENT_PROJECT_NOT_FOUND', 'Ownership goes to users of the project internal.', {
    project_id: projectId,
  });
}
