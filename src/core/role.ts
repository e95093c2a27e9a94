/** Roles of a branch. Catnap generates the password; the server only ever gets its SCRAM verifier. */
import { selectBranch } from '../db/branches.ts';
import { selectDatabases } from '../db/databases.ts';
import {
  announceReset,
  deleteRoleRow,
  insertRole,
  type RoleRow,
  selectRole,
  selectRoles,
  updateRole,
} from '../db/roles.ts';
import { askedFor } from '../db/taken-back.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import { type BranchId, newRolePassword, type ProjectId } from '../lib/ids.ts';
import { buildVerifier, parseVerifier } from '../lib/scram-verifier.ts';
import { type Caller, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import { queueCatalogChange } from './catalog.ts';
import type { CommandScope, Scope } from './context.ts';
import type { Operation } from './operation.ts';

export type Role = RoleRow;

const nameBytesMax = 63;
const rolesPerBranchMax = 500;
const iterationsMax = 100_000;
const reservedNames = new Set([
  'public',
  'none',
  'catnap_admin',
  'catnap_replication',
  'neon_superuser',
  'cloud_admin',
  'zenith_admin',
]);

export interface RoleChange {
  readonly role: Role;
  /** Null for a role that cannot log in. */
  readonly password: string | null;
  readonly operations: readonly Operation[];
}

export interface RoleAddress {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly name: string;
}

export async function createRole(
  scope: CommandScope,
  caller: Caller,
  input: RoleAddress & { readonly noLogin: boolean },
): Promise<RoleChange> {
  // Sent together, carried out in this order: the project is held while the others are read.
  const [project, branch, roles] = await Promise.all([
    requireProjectLocked(scope, caller, input.projectId),
    selectBranch(scope.tx, input.projectId, input.branchId),
    selectRoles(scope.tx, input.branchId),
  ]);
  if (branch === undefined) throw notFound('branch');
  requireRoleName(input.name, 'body.role.name');
  if (roles.some((role) => role.name === input.name)) {
    throw new CatnapError('conflict', withDetails('role already exists', { role_name: input.name }));
  }
  if (roles.length >= rolesPerBranchMax) {
    throw new CatnapError('unprocessable', `a branch has at most ${rolesPerBranchMax} roles`);
  }
  const [made, operations] = await Promise.all([
    insertNewRole(scope, {
      projectId: project.id,
      branchId: branch.id,
      name: input.name,
      noLogin: input.noLogin,
      storePassword: project.storePasswords,
    }),
    queueCatalogChange(scope, branch),
  ]);
  return { ...made, operations };
}

/** Also for project creation: the first role of a project needs no operation of its own. */
export async function insertNewRole(
  scope: CommandScope,
  input: RoleAddress & { readonly noLogin: boolean; readonly storePassword: boolean; readonly limited?: boolean },
): Promise<{ readonly role: Role; readonly password: string | null }> {
  const password = input.noLogin ? null : newRolePassword();
  const role = await insertRole(scope.tx, {
    branchId: input.branchId,
    name: input.name,
    verifier: password === null ? null : buildVerifier(password),
    password: password !== null && input.storePassword ? sealPassword(scope, input, password) : null,
    noLogin: input.noLogin,
    limited: input.limited ?? false,
  });
  return { role, password };
}

export async function listRoles(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  branchId: BranchId,
): Promise<Role[]> {
  await requireProject(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  return selectRoles(scope.sql, branch.id);
}

export async function getRole(scope: Scope, caller: Caller, address: RoleAddress): Promise<Role> {
  await requireProject(scope, caller, address.projectId);
  return requireRole(scope, address);
}

export async function deleteRole(scope: CommandScope, caller: Caller, address: RoleAddress): Promise<RoleChange> {
  // Sent together, carried out in this order: the project is held while the others are read.
  const [, branch, role, databases] = await Promise.all([
    requireProjectLocked(scope, caller, address.projectId),
    selectBranch(scope.tx, address.projectId, address.branchId),
    selectRole(scope.tx, address.branchId, address.name),
    selectDatabases(scope.tx, address.branchId),
  ]);
  if (branch === undefined) throw notFound('branch');
  if (role === undefined) throw notFound('role');
  const owned = databases.filter((database) => database.ownerName === role.name);
  if (owned.length > 0) {
    throw new CatnapError(
      'conflict',
      withDetails('role owns databases and cannot be deleted', {
        role_name: role.name,
        databases: owned.map((database) => database.name).join(', '),
      }),
    );
  }
  if (!role.applied) {
    await deleteRoleRow(scope.tx, role.id);
    return { role, password: null, operations: [] };
  }
  const [dropped, operations] = await Promise.all([
    updateRole(scope.tx, role.id, { droppedAt: scope.clock.now(), pending: true }),
    queueCatalogChange(scope, branch, askedFor('role', { id: role.id, revision: role.revision + 1 })),
  ]);
  return { role: dropped, password: null, operations };
}

export async function resetRolePassword(
  scope: CommandScope,
  caller: Caller,
  address: RoleAddress,
  given?: string | undefined,
): Promise<RoleChange> {
  const project = await requireProjectLocked(scope, caller, address.projectId);
  const branch = await requireBranch(scope, address.projectId, address.branchId);
  const role = await requireRole(scope, address);
  if (role.noLogin) throw new CatnapError('unprocessable', withDetails('role cannot log in', { role_name: role.name }));
  const { verifier, password } = given === undefined ? newPassword() : takePassword(given);
  const seal = given === undefined ? sealPassword : sealGivenPassword;
  const changed = await updateRole(scope.tx, role.id, {
    verifier,
    ...(role.applied && !role.pending && { heldVerifier: role.verifier }),
    password: project.storePasswords && password !== null ? seal(scope, address, password) : null,
    pending: true,
    resetAt: scope.clock.now(),
  });
  await announceReset(scope.tx, branch.id);
  return { role: changed, password, operations: await queueCatalogChange(scope, branch) };
}

interface Password {
  readonly verifier: string;
  /** Null where nothing but the verifier is known. */
  readonly password: string | null;
}

function newPassword(): Password {
  const password = newRolePassword();
  return { verifier: buildVerifier(password), password };
}

/** As Postgres takes it: a text of the form of a verifier is one, any other text is a password. */
function takePassword(given: string): Password {
  if (!/^(SCRAM-SHA-256\$|md5[0-9a-f]{32}$)/.test(given)) {
    if (given.includes('\0')) throw invalid('invalid request: body.password must not contain a null character');
    return { verifier: buildVerifier(given), password: given };
  }
  const iterations = parseVerifier(given)?.iterations;
  // Each login takes the client as many rounds as this.
  if (iterations === undefined || iterations > iterationsMax) {
    throw invalid(
      'invalid request: body.password must be a password, or a SCRAM-SHA-256 verifier ' +
        `with at most ${iterationsMax} iterations`,
    );
  }
  return { verifier: given, password: null };
}

export async function revealRolePassword(scope: Scope, caller: Caller, address: RoleAddress): Promise<string> {
  const project = await requireProject(scope, caller, address.projectId);
  const role = await requireRole(scope, address);
  if (!project.storePasswords) throw new CatnapError('precondition_failed', 'the project does not store passwords');
  const password = openPassword(scope, address.projectId, role);
  if (password === null) {
    throw new CatnapError(
      'precondition_failed',
      withDetails('the password of this role is not stored: reset it to get a new one', {
        role_name: role.name,
      }),
    );
  }
  return password;
}

/** Null when the password is not stored, as for roles made or changed by SQL. */
export function openPassword(
  scope: Pick<Scope, 'box'>,
  projectId: ProjectId,
  role: Pick<Role, 'name' | 'password'>,
): string | null {
  return role.password === null ? null : scope.box.open(role.password, passwordSealContext(projectId, role.name));
}

export function requireRoleName(name: string, field: string): void {
  const bytes = Buffer.byteLength(name);
  if (bytes === 0 || bytes > nameBytesMax)
    throw invalid(`invalid request: ${field} must be 1 to ${nameBytesMax} bytes`);
  if (name.startsWith('pg_') || reservedNames.has(name)) {
    throw invalid(`invalid request: ${field} must not start with pg_ nor be one of ${[...reservedNames].join(', ')}`);
  }
}

async function requireRole(scope: Scope, address: RoleAddress): Promise<Role> {
  const branch = await requireBranch(scope, address.projectId, address.branchId);
  const role = await selectRole(scope.sql, branch.id, address.name);
  if (role === undefined) throw notFound('role');
  return role;
}

function sealPassword(scope: CommandScope, address: RoleAddress, password: string): Uint8Array {
  return scope.box.sealFindable(password, passwordSealContext(address.projectId, address.name));
}

/** Not findable: a password that somebody has chosen can be guessed, and a guess would be one at every branch. */
function sealGivenPassword(scope: CommandScope, address: RoleAddress, password: string): Uint8Array {
  return scope.box.seal(password, passwordSealContext(address.projectId, address.name));
}

/** Not bound to the branch: a child branch takes its parent's roles over as they are. */
export const passwordSealContext = (projectId: ProjectId, name: string) => `role:${projectId}:${name}`;
