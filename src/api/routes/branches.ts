/** Branches: list, create, change, delete. `branch-content.ts` has what reads or replaces the data of one. */
import {
  countBranchesOf,
  deleteBranch,
  getBranch,
  listBranches,
  setDefaultBranch,
  updateBranchOf,
} from '../../core/branch.ts';
import { createBranch } from '../../core/branch-create.ts';
import { isAllowed } from '../../core/key-scope.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import {
  BranchCountQuery,
  BranchCountReply,
  BranchCreateBody,
  BranchCreateReply,
  BranchDeleteQuery,
  BranchesQuery,
  BranchesReply,
  BranchOperationsReply,
  BranchReply,
  BranchUpdateBody,
} from '../schemas/branch.ts';
import { BranchParams, ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import {
  annotationView,
  branchChange,
  branchesView,
  branchInput,
  branchPage,
  branchView,
  createdBranchView,
} from '../views/branch.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress, projectAddress } from '../views/params.ts';
import { ask, write } from './command.ts';
import { requireDriver } from './good-driver.ts';
import { requireGoodSettingsIn } from './good-settings.ts';

const tags = ['Branches'];
const collection = '/projects/:project_id/branches';
const member = `${collection}/:branch_id`;

export function branchRoutes(app: App, parts: ApiParts): void {
  listRoutes(app, parts);
  changeRoutes(app, parts);

  const create = {
    tags,
    operationId: 'createProjectBranch',
    summary: 'Create a branch',
    description:
      'A copy of the parent’s data, with its roles and databases. It has no compute unless `endpoints` asks for one.',
    params: ProjectParams,
    body: BranchCreateBody,
    response: { 201: BranchCreateReply, ...errorReply },
  };
  app.post(collection, { schema: create }, async (request, reply) => {
    reply.status(201);
    const { projectId } = projectAddress(request.params);
    const { endpoints, branch } = request.body ?? {};
    requireDriver(parts.config, { endpoints, initSource: branch?.init_source });
    for (const { settings } of request.body?.endpoints ?? []) {
      const checked = { settings: settings?.pg_settings, field: 'body.endpoints.settings.pg_settings' };
      await requireGoodSettingsIn(parts, request, projectId, checked);
    }
    return write(parts, request, async (scope, caller) => {
      const made = await createBranch(scope, caller, projectId, branchInput(request.body));
      return createdBranchView(parts.config, made, {
        hasPasswords: isAllowed(caller, 'everything'),
        now: parts.clock.now(),
      });
    });
  });

  const get = {
    tags,
    operationId: 'getProjectBranch',
    summary: 'Get a branch',
    description: 'The branch and its labels.',
    params: BranchParams,
    response: { 200: BranchReply, ...errorReply },
  };
  app.get(member, { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      const branch = await getBranch(scope, caller, projectId, branchId);
      return { branch: branchView(branch, parts.clock.now()), annotation: annotationView(branch) };
    }),
  );
}

function listRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listProjectBranches',
    summary: 'List branches',
    description: 'All of them, or in pages when `limit` is given.',
    params: ProjectParams,
    querystring: BranchesQuery,
    response: { 200: BranchesReply, ...errorReply },
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const page = branchPage(request.query);
      const found = await listBranches(scope, caller, projectAddress(request.params).projectId, page);
      return branchesView(page, found, parts.clock.now());
    }),
  );

  const count = {
    tags,
    operationId: 'countProjectBranches',
    summary: 'Count branches',
    description: 'How many there are, or how many match.',
    params: ProjectParams,
    querystring: BranchCountQuery,
    response: { 200: BranchCountReply, ...errorReply },
  };
  app.get(`${collection}/count`, { schema: count }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId } = projectAddress(request.params);
      return { count: await countBranchesOf(scope, caller, projectId, request.query.search ?? null) };
    }),
  );
}

function changeRoutes(app: App, parts: ApiParts): void {
  const update = {
    tags,
    operationId: 'updateProjectBranch',
    summary: 'Change a branch',
    description: 'Renames it, protects it, or sets when it deletes itself. What is left out stays as it is.',
    params: BranchParams,
    body: BranchUpdateBody,
    response: { 200: BranchOperationsReply, ...errorReply },
  };
  app.patch(member, { schema: update }, (request) =>
    write(parts, request, async (scope, caller) => {
      const changed = await updateBranchOf(scope, caller, branchAddress(request.params), branchChange(request.body));
      return { branch: branchView(changed, parts.clock.now()), operations: [] };
    }),
  );

  const remove = {
    tags,
    operationId: 'deleteProjectBranch',
    summary: 'Delete a branch',
    description:
      'With its computes. Its data can be recovered for some days, unless `hard_delete` says otherwise. Not possible ' +
      'for the default, the last root or a protected branch, nor for a parent.',
    params: BranchParams,
    querystring: BranchDeleteQuery,
    response: { 200: BranchOperationsReply, ...errorReply },
  };
  app.delete(member, { schema: remove }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      const deleted = await deleteBranch(scope, caller, projectId, branchId, request.query.hard_delete);
      return { branch: branchView(deleted.branch, parts.clock.now()), operations: operationViews(deleted.operations) };
    }),
  );

  for (const [name, operationId, summary] of [
    ['set_as_default', 'setDefaultProjectBranch', 'Make a branch the default'],
    // The name that older clients use.
    ['set_as_primary', 'setPrimaryProjectBranch', 'Make a branch the default (older name)'],
  ] as const) {
    const schema = {
      tags,
      operationId,
      summary,
      description: 'The default branch is the one that is meant where a request names none.',
      params: BranchParams,
      response: { 200: BranchOperationsReply, ...errorReply },
    };
    app.post(`${member}/${name}`, { schema }, (request) =>
      write(parts, request, async (scope, caller) => {
        const { projectId, branchId } = branchAddress(request.params);
        const changed = await setDefaultBranch(scope, caller, projectId, branchId);
        return { branch: branchView(changed, parts.clock.now()), operations: [] };
      }),
    );
  }
}
