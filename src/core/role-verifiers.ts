/**
 * The verifiers of a branch's roles, for a copy of the roles elsewhere. While the compute is awake, its server is
 * asked, because owners change passwords by SQL; a change over the API that is on its way to the server counts more.
 */
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import { selectRoles } from '../db/roles.ts';
import { CatnapError } from '../lib/errors.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress, ServerCatalog } from '../lib/model.ts';
import { type Caller, requireBranch, requireProject } from './access.ts';
import type { Scope } from './context.ts';
import { adminSecretSealContext } from './project.ts';

/** Where a server answers, and the password of Catnap's own login there. */
export type ReadVerifiers = (server: {
  readonly address: ComputeAddress;
  readonly adminSecret: string;
}) => Promise<ServerCatalog['roles']>;

export async function listRoleVerifiers(
  scope: Scope,
  caller: Caller,
  address: { readonly projectId: ProjectId; readonly branchId: BranchId },
  read: ReadVerifiers,
): Promise<ServerCatalog['roles']> {
  const project = await requireProject(scope, caller, address.projectId);
  const branch = await requireBranch(scope, address.projectId, address.branchId);
  const rows = await selectRoles(scope.sql, branch.id);
  const endpoint = await selectReadWriteEndpoint(scope.sql, branch.id);
  if (endpoint === undefined || endpoint.address === null)
    return rows.map(({ name, verifier }) => ({ name, verifier }));
  const adminSecret = scope.box.open(project.adminSecret, adminSecretSealContext(project.id));
  const held = await read({ address: endpoint.address, adminSecret }).catch((cause: unknown) => {
    throw new CatnapError('unavailable', 'the server of the compute does not answer', { cause, retryAfterSeconds: 1 });
  });
  const pending = rows.filter((row) => row.pending).map(({ name, verifier }) => ({ name, verifier }));
  const isPending = new Set(pending.map(({ name }) => name));
  return [...pending, ...held.filter(({ name }) => !isPending.has(name))];
}
