/** What is in a branch: restoring it to the head of another one. */
import { restoreBranch } from '../../core/branch-restore.ts';
import type { App } from '../app-type.ts';
import { write } from '../command.ts';
import type { ApiParts } from '../parts.ts';
import { BranchOperationsReply, BranchRestoreBody } from '../schemas/branch.ts';
import { BranchParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { branchView, restoreInput } from '../views/branch.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress } from '../views/params.ts';

const tags = ['Branches'];
const member = '/projects/:project_id/branches/:branch_id';

export function branchContentRoutes(app: App, parts: ApiParts): void {
  const restore = {
    tags,
    operationId: 'restoreProjectBranch',
    summary: 'Restore a branch',
    description:
      'Its data, roles and databases become those of the source’s head. It keeps its id, name and computes; connections drop briefly.',
    params: BranchParams,
    body: BranchRestoreBody,
    response: { 200: BranchOperationsReply, ...errorReply },
  };
  app.post(`${member}/restore`, { schema: restore }, (request) =>
    write(parts, request, async (scope, caller) => {
      const input = restoreInput(branchAddress(request.params), request.body);
      const { branch, operations } = await restoreBranch(scope, caller, input);
      return { branch: branchView(branch), operations: operationViews(operations) };
    }),
  );
}
