/**
 * The passwords of another branch's roles, for a copy of its databases in another project. Verifiers and stored
 * passwords go from row to row: nobody sees them, and clients log in to the copy as they do to the source.
 */
import { announceReset, insertRole, type RoleRow, selectRoles, updateRole } from '../db/roles.ts';
import { invalid } from '../lib/errors.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { isFindable } from '../lib/secrets.ts';
import { type Caller, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import { queueCatalogChange } from './catalog.ts';
import type { CommandScope } from './context.ts';
import type { Operation } from './operation.ts';
import { openPassword, passwordSealContext, type Role } from './role.ts';

interface BranchAddress {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
}

export interface CopiedPasswords {
  readonly roles: readonly Role[];
  readonly operations: readonly Operation[];
}

export async function copyRolePasswords(
  scope: CommandScope,
  caller: Caller,
  target: BranchAddress,
  source: BranchAddress,
): Promise<CopiedPasswords> {
  if (source.branchId === target.branchId)
    throw invalid('invalid request: body.source.branch_id must be another branch');
  const project = await requireProjectLocked(scope, caller, target.projectId);
  const branch = await requireBranch(scope, target.projectId, target.branchId);
  await requireProject(scope, caller, source.projectId);
  await requireBranch(scope, source.projectId, source.branchId);
  const there = new Map((await selectRoles(scope.tx, branch.id)).map((role) => [role.name, role]));
  const roles: Role[] = [];
  for (const role of await selectRoles(scope.tx, source.branchId)) {
    if (role.verifier === null || role.protected) continue;
    const secrets = {
      verifier: role.verifier,
      password: project.storePasswords ? sealAgain(scope, source.projectId, target.projectId, role) : null,
    };
    roles.push(await giveSecrets(scope, branch.id, role.name, there.get(role.name), secrets));
  }
  if (roles.length === 0) return { roles, operations: [] };
  await announceReset(scope.tx, branch.id);
  return { roles, operations: await queueCatalogChange(scope, branch) };
}

/**
 * A role that is not known here is made, or was made by SQL a moment ago. What it may do in the source is not on
 * record, so it gets no right to make databases or roles.
 */
async function giveSecrets(
  scope: CommandScope,
  branchId: BranchId,
  name: string,
  known: RoleRow | undefined,
  secrets: Pick<RoleRow, 'verifier' | 'password'>,
): Promise<Role> {
  if (known === undefined) return insertRole(scope.tx, { branchId, name, noLogin: false, limited: true, ...secrets });
  return updateRole(scope.tx, known.id, {
    ...secrets,
    ...(known.applied && !known.pending && { heldVerifier: known.verifier }),
    noLogin: false,
    pending: true,
    resetAt: scope.clock.now(),
  });
}

function sealAgain(scope: CommandScope, from: ProjectId, to: ProjectId, role: RoleRow): Uint8Array | null {
  const password = openPassword(scope, from, role);
  if (password === null || role.password === null) return null;
  const context = passwordSealContext(to, role.name);
  return isFindable(role.password) ? scope.box.sealFindable(password, context) : scope.box.seal(password, context);
}
