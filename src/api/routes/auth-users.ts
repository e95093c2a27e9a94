/** Users of an auth integration (beta): made and deleted at the provider, from where they reach the database. */

import { isProviderFailure } from '../../auth-client/errors.ts';
import type { IntegrationAddress } from '../../core/auth-integration.ts';
import { requireEmail } from '../../core/auth-rules.ts';
import { noteUser } from '../../core/users-sync-webhook.ts';
import { notFound } from '../../lib/errors.ts';
import { asProjectId } from '../../lib/ids.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import {
  AuthUserBody,
  AuthUserParams,
  AuthUserReply,
  BranchAuthUserBody,
  BranchAuthUserParams,
  nothing,
} from '../schemas/auth.ts';
import { BranchParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { branchAddress, projectAddress } from '../views/params.ts';
import { writeOutside } from './command.ts';
import { openIntegration } from './provider-project.ts';

const tags = ['Auth (beta)'];
const ofBranch = '/projects/:project_id/branches/:branch_id/auth/users';

type Request = Parameters<typeof writeOutside>[1];

export function authUserRoutes(app: App, parts: ApiParts): void {
  const create = {
    tags,
    operationId: 'createNeonAuthNewUser',
    summary: 'Create a user (beta)',
    description: 'At the provider. The row is in the table of users within a second, or before a compute wakes.',
    body: AuthUserBody,
    response: { 201: AuthUserReply, ...errorReply },
  };
  app.post('/projects/auth/user', { schema: create }, (request, reply) => {
    reply.status(201);
    return createUser(parts, request, { projectId: asProjectId(request.body.project_id) }, request.body);
  });

  const createOfBranch = {
    tags,
    operationId: 'createBranchNeonAuthNewUser',
    summary: 'Create a user of a branch’s integration (beta)',
    description: 'As creating a user of the project’s integration.',
    params: BranchParams,
    body: BranchAuthUserBody,
    response: { 201: AuthUserReply, ...errorReply },
  };
  app.post(ofBranch, { schema: createOfBranch }, (request, reply) => {
    reply.status(201);
    return createUser(parts, request, branchAddress(request.params), request.body);
  });

  const remove = {
    tags,
    operationId: 'deleteNeonAuthUser',
    summary: 'Delete a user (beta)',
    description: 'At the provider. The row stays and gets its `deleted_at`.',
    params: AuthUserParams,
    response: { 204: nothing, ...errorReply },
  };
  app.delete('/projects/:project_id/auth/users/:auth_user_id', { schema: remove }, async (request, reply) => {
    await deleteUser(parts, request, projectAddress(request.params), request.params.auth_user_id);
    return reply.status(204).send();
  });

  const removeOfBranch = {
    tags,
    operationId: 'deleteBranchNeonAuthUser',
    summary: 'Delete a user of a branch’s integration (beta)',
    description: 'As deleting a user of the project’s integration.',
    params: BranchAuthUserParams,
    response: { 204: nothing, ...errorReply },
  };
  app.delete(`${ofBranch}/:auth_user_id`, { schema: removeOfBranch }, async (request, reply) => {
    await deleteUser(parts, request, branchAddress(request.params), request.params.auth_user_id);
    return reply.status(204).send();
  });
}

function createUser(
  parts: ApiParts,
  request: Request,
  address: IntegrationAddress,
  { email, name }: { readonly email: string; readonly name?: string },
): Promise<{ id: string }> {
  return writeOutside(parts, request, async (scope, caller) => {
    const { project, integration } = await openIntegration(parts, scope, caller, address);
    const id = await project.createUser({ email: requireEmail(email), name: name ?? null });
    await noteUser(scope, integration, id);
    return { id };
  });
}

async function deleteUser(parts: ApiParts, request: Request, address: IntegrationAddress, id: string): Promise<void> {
  await writeOutside(parts, request, async (scope, caller) => {
    const { project, integration } = await openIntegration(parts, scope, caller, address);
    try {
      await project.deleteUser(id);
    } catch (error) {
      throw isProviderFailure(error, 'missing') ? notFound('user') : error;
    }
    await noteUser(scope, integration, id);
    return {};
  });
}
