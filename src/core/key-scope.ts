/**
 * What a key with a limited scope may do. A key reaches the same things whatever its scope is; the scope says what it
 * may do there. `read_only` reads all but secrets. `sql` finds its way to databases and gets connection strings.
 * `branches` reads as `read_only` does, makes branches, and changes those that are neither the default one nor
 * protected; it gets the password of a role there unless that opens one of the others too.
 */
import type { ApiKeyScope } from '../db/api-keys.ts';
import { selectGuardedRoles, selectRole } from '../db/roles.ts';
import { CatnapError, withDetails } from '../lib/errors.ts';
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { isPasswordOf } from '../lib/scram-verifier.ts';
import { type Caller, requireBranch, requireEndpoint, requireProject, requireProjectLocked } from './access.ts';
import type { CommandScope, Scope } from './context.ts';
import { openPassword } from './role.ts';

/**
 * What a request needs of the scope of its key: to find things by name, to read the rest, to get a password, to make a
 * branch, to change one, or everything.
 */
export type Need = 'find' | 'read' | 'connect' | 'make_branch' | 'change_branch' | 'everything';

const allowed: Readonly<Record<ApiKeyScope, readonly Need[]>> = {
  full: ['find', 'read', 'connect', 'make_branch', 'change_branch', 'everything'],
  read_only: ['find', 'read'],
  branches: ['find', 'read', 'connect', 'make_branch', 'change_branch'],
  sql: ['find', 'connect'],
};

export const isAllowed = ({ scope }: Pick<Caller, 'scope'>, need: Need) => allowed[scope].includes(need);

export function requireScope(caller: Caller, need: Need): void {
  if (!isAllowed(caller, need)) throw new CatnapError('forbidden', `not allowed for API keys of scope ${caller.scope}`);
}

/** Whether what the key may do depends on the branch. */
export const isBoundToBranches = ({ scope }: Caller, need: Need) =>
  scope === 'branches' && (need === 'connect' || need === 'change_branch');

export interface BranchTargets {
  readonly branchIds: readonly BranchId[];
  readonly endpointIds: readonly EndpointId[];
}

/** Throws unless all are, or are on, branches that a key of scope `branches` may change. Returns the branches. */
export async function requireChangeableBranches(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  { branchIds, endpointIds }: BranchTargets,
): Promise<BranchId[]> {
  await requireProject(scope, caller, projectId);
  const endpoints = await Promise.all(endpointIds.map((id) => requireEndpoint(scope, projectId, id)));
  const ids = [...new Set([...branchIds, ...endpoints.map(({ branchId }) => branchId)])];
  for (const id of ids) {
    const branch = await requireBranch(scope, projectId, id);
    if (branch.isDefault || branch.protected) throw guarded(branch.name);
  }
  // A request that names none means the default one.
  if (ids.length === 0) throw guarded('the default one');
  return ids;
}

/** In the transaction of a change: no branch becomes protected, or the default one, before its end. */
export async function requireChangeableBranchesLocked(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  targets: BranchTargets,
): Promise<void> {
  await requireProjectLocked(scope, caller, projectId);
  await requireChangeableBranches(scope, caller, projectId, targets);
}

/**
 * Throws if the stored password of the role opens a default or protected branch as well: a branch begins with the
 * passwords of its parent. After a reset on the branch itself the password is its own.
 */
export async function requireOwnPassword(
  scope: Scope,
  projectId: ProjectId,
  branchId: BranchId,
  roleName: string,
): Promise<void> {
  const role = await selectRole(scope.sql, branchId, roleName);
  const password = role === undefined ? null : openPassword(scope, projectId, role);
  // What is not there, or not stored, is refused by the request itself.
  if (password === null) return;
  for (const other of await selectGuardedRoles(scope.sql, projectId, roleName)) {
    for (const verifier of [other.verifier, other.heldVerifier]) {
      if (verifier !== null && (await isPasswordOf(verifier, password))) throw shared(roleName);
    }
  }
}

function guarded(branch: string): CatnapError {
  const message = 'API keys of scope branches leave the default branch and protected branches alone';
  return new CatnapError('forbidden', withDetails(message, { branch }));
}

function shared(role: string): CatnapError {
  const message =
    'the password of this role also opens the default branch or a protected one, which API keys of scope branches ' +
    'leave alone: reset it on this branch, then it is a password of its own';
  return new CatnapError('forbidden', withDetails(message, { role_name: role }));
}
