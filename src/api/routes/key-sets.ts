/** Providers whose tokens log in to a project over HTTP (JWKS). */
import { addKeySet, listKeySets, removeKeySet } from '../../core/key-set.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams, ref } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { JWKS, JwksCreateBody, JwksListReply, JwksOperationsReply, JwksParams } from '../schemas/key-set.ts';
import { keySetInput, keySetView } from '../views/key-set.ts';
import { operationViews } from '../views/operation.ts';
import { projectAddress } from '../views/params.ts';
import { ask, write } from './command.ts';

const tags = ['Projects'];
const collection = '/projects/:project_id/jwks';

export function keySetRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'getProjectJWKS',
    summary: 'List key sets',
    description: 'The providers whose tokens log in to the project over HTTP.',
    params: ProjectParams,
    response: { 200: JwksListReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId } = projectAddress(request.params);
      return { jwks: (await listKeySets(scope, caller, projectId)).map(keySetView) };
    }),
  );

  const add = {
    tags,
    operationId: 'addProjectJWKS',
    summary: 'Add a key set',
    description: 'Tokens that its keys verify can then run SQL over HTTP, as the roles that are named.',
    params: ProjectParams,
    body: JwksCreateBody,
    response: { 201: JwksOperationsReply, ...errorReply },
  };
  app.post(collection, { schema: add }, async (request, reply) => {
    reply.status(201);
    return write(parts, request, async (scope, caller) => {
      const { keySet, operations } = await addKeySet(scope, caller, keySetInput(request.params, request.body));
      return { jwks: keySetView(keySet), operations: operationViews(operations) };
    });
  });

  const remove = {
    tags,
    operationId: 'deleteProjectJWKS',
    summary: 'Delete a key set',
    description: 'Its tokens stop working at once. The roles stay.',
    params: JwksParams,
    response: { 200: ref(JWKS), ...errorReply },
  };
  app.delete(`${collection}/:jwks_id`, { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { projectId } = projectAddress(request.params);
      return keySetView(await removeKeySet(scope, caller, projectId, request.params.jwks_id));
    }),
  );
}
