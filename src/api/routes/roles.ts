/** Roles of a branch, and their passwords. */

import {
  createRole,
  deleteRole,
  getRole,
  listRoles,
  type RoleChange,
  resetRolePassword,
  revealRolePassword,
} from '../../core/role.ts';
import { listRoleVerifiers } from '../../core/role-verifiers.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { BranchParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import {
  RoleCreateBody,
  RoleOperationsReply,
  RoleParams,
  RolePasswordReply,
  RoleReply,
  RoleResetBody,
  RolesReply,
  RoleVerifiersReply,
} from '../schemas/role.ts';
import { present } from '../views/common.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress, roleAddress } from '../views/params.ts';
import { roleInput, roleView } from '../views/role.ts';
import { ask, write } from './command.ts';

const tags = ['Roles'];
const collection = '/projects/:project_id/branches/:branch_id/roles';
const member = `${collection}/:role_name`;

export function roleRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectBranchRoles',
    summary: 'List roles',
    description: 'All roles of the branch, without passwords.',
    params: BranchParams,
    response: { 200: RolesReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      return { roles: (await listRoles(scope, caller, projectId, branchId)).map((role) => roleView(role)) };
    }),
  );

  const create = {
    tags,
    operationId: 'createProjectBranchRole',
    summary: 'Create a role',
    description: 'The reply has its password, which Catnap makes.',
    params: BranchParams,
    body: RoleCreateBody,
    response: { 201: RoleOperationsReply, ...errorReply },
  };
  app.post(collection, { schema: create }, async (request, reply) => {
    reply.status(201);
    return write(parts, request, async (scope, caller) =>
      changeView(await createRole(scope, caller, roleInput(request.params, request.body))),
    );
  });

  const get = {
    tags,
    operationId: 'getProjectBranchRole',
    summary: 'Get a role',
    description: 'By its name, without the password.',
    params: RoleParams,
    response: { 200: RoleReply, ...errorReply },
  };
  app.get(member, { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) => ({
      role: roleView(await getRole(scope, caller, roleAddress(request.params))),
    })),
  );

  const remove = {
    tags,
    operationId: 'deleteProjectBranchRole',
    summary: 'Delete a role',
    description: 'Not possible while it owns a database.',
    params: RoleParams,
    response: { 200: RoleOperationsReply, ...errorReply },
  };
  app.delete(member, { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) =>
      changeView(await deleteRole(scope, caller, roleAddress(request.params))),
    ),
  );
  passwordRoutes(app, parts);
  verifierRoute(app, parts);
}

function passwordRoutes(app: App, parts: ApiParts): void {
  const reveal = {
    tags,
    operationId: 'getProjectBranchRolePassword',
    summary: 'Show the password of a role',
    description: 'Needs a project that stores passwords.',
    params: RoleParams,
    response: { 200: RolePasswordReply, ...errorReply },
  };
  app.get(`${member}/reveal_password`, { schema: reveal }, (request) =>
    ask(parts, request, async (scope, caller) => ({
      password: await revealRolePassword(scope, caller, roleAddress(request.params)),
    })),
  );

  // The Python SDK asks with POST.
  const revealByPost = {
    ...reveal,
    operationId: 'revealProjectBranchRolePassword',
    summary: 'Show the password of a role (older method)',
  };
  app.post(`${member}/reveal_password`, { schema: revealByPost }, (request) =>
    ask(parts, request, async (scope, caller) => ({
      password: await revealRolePassword(scope, caller, roleAddress(request.params)),
    })),
  );

  const reset = {
    tags,
    operationId: 'resetProjectBranchRolePassword',
    summary: 'Give a role a new password',
    description: 'The reply has it, unless a verifier was given. It logs the role out everywhere.',
    params: RoleParams,
    body: RoleResetBody,
    response: { 200: RoleOperationsReply, ...errorReply },
  };
  app.post(`${member}/reset_password`, { schema: reset }, (request) =>
    write(parts, request, async (scope, caller) =>
      changeView(await resetRolePassword(scope, caller, roleAddress(request.params), request.body?.password)),
    ),
  );
}

function verifierRoute(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectBranchRoleVerifiers',
    summary: 'List the verifiers of passwords',
    description:
      'With one, reset_password elsewhere gives a role the password that it has here, whether or not that is stored. ' +
      'An addition of Catnap.',
    params: BranchParams,
    response: { 200: RoleVerifiersReply, ...errorReply },
  };
  app.get('/projects/:project_id/branches/:branch_id/role_verifiers', { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      const found = await listRoleVerifiers(scope, caller, { projectId, branchId }, parts.readVerifiers);
      return { roles: found.map(({ name, verifier }) => ({ name, ...present({ verifier }) })) };
    }),
  );
}

function changeView(change: RoleChange) {
  return { role: roleView(change.role, change.password), operations: operationViews(change.operations) };
}
