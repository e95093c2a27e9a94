/** Deleted projects and branches: list, bring back, remove for good. */
import { listDeleted, purgeBranch, purgeProject, recoverBranch, recoverProject } from '../../core/recovery.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { BranchOperationsReply, BranchRecoverReply } from '../schemas/branch.ts';
import { BranchParams, ProjectParams } from '../schemas/common.ts';
import { DeletedReply } from '../schemas/deleted.ts';
import { errorReply } from '../schemas/error.ts';
import { ProjectRecoverReply, ProjectReply } from '../schemas/project.ts';
import { branchView } from '../views/branch.ts';
import { deletedView } from '../views/deleted.ts';
import { endpointView } from '../views/endpoint.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress, projectAddress } from '../views/params.ts';
import { projectView } from '../views/project.ts';
import { ask, write } from './command.ts';

const project = '/projects/:project_id';
const branch = `${project}/branches/:branch_id`;

export function recoveryRoutes(app: App, parts: ApiParts): void {
  const { config, clock } = parts;
  const list = {
    tags: ['Projects'],
    operationId: 'listDeleted',
    summary: 'List what was deleted',
    description: 'Projects and branches that can still be recovered; what was deleted last comes first.',
    response: { 200: DeletedReply, ...errorReply },
  };
  app.get('/deleted', { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => ({ deleted: (await listDeleted(scope, caller)).map(deletedView) })),
  );

  const recoverOfProject = {
    tags: ['Projects'],
    operationId: 'recoverProject',
    summary: 'Recover a deleted project',
    description: 'With its data, settings, keys and connection strings. Its computes sleep until somebody connects.',
    params: ProjectParams,
    response: { 200: ProjectRecoverReply, ...errorReply },
  };
  app.post(`${project}/recover`, { schema: recoverOfProject }, (request) =>
    write(parts, request, async (scope, caller) => {
      const found = await recoverProject(scope, caller, projectAddress(request.params).projectId);
      const now = clock.now();
      const branches = found.branches.map((row) => branchView(row, now));
      return { project: projectView(config, found.project, now), branches };
    }),
  );

  const purgeOfProject = {
    tags: ['Projects'],
    operationId: 'purgeProject',
    summary: 'Remove a deleted project for good',
    description: 'Before its time is up, to free its space. Nothing brings it back.',
    params: ProjectParams,
    response: { 200: ProjectReply, ...errorReply },
  };
  app.post(`${project}/purge`, { schema: purgeOfProject }, (request) =>
    write(parts, request, async (scope, caller) => {
      const purged = await purgeProject(scope, caller, projectAddress(request.params).projectId);
      return { project: projectView(config, purged, clock.now()) };
    }),
  );
  branchRoutes(app, parts);
}

function branchRoutes(app: App, parts: ApiParts): void {
  const recover = {
    tags: ['Branches'],
    operationId: 'recoverProjectBranch',
    summary: 'Recover a deleted branch',
    description:
      'With its data and computes, whose connection strings work again. A branch that had expired does not expire ' +
      'any more.',
    params: BranchParams,
    response: { 200: BranchRecoverReply, ...errorReply },
  };
  app.post(`${branch}/recover`, { schema: recover }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      const found = await recoverBranch(scope, caller, projectId, branchId);
      const endpoints = found.endpoints.map((row) => endpointView(parts.config, row));
      return { branch: branchView(found.branch, parts.clock.now()), endpoints };
    }),
  );

  const purge = {
    tags: ['Branches'],
    operationId: 'purgeProjectBranch',
    summary: 'Remove a deleted branch for good',
    description: 'Before its time is up, to free its space. Deleted children of it must be purged first.',
    params: BranchParams,
    response: { 200: BranchOperationsReply, ...errorReply },
  };
  app.post(`${branch}/purge`, { schema: purge }, (request) =>
    write(parts, request, async (scope, caller) => {
      const { projectId, branchId } = branchAddress(request.params);
      const purged = await purgeBranch(scope, caller, projectId, branchId);
      return { branch: branchView(purged.branch, parts.clock.now()), operations: operationViews(purged.operations) };
    }),
  );
}
