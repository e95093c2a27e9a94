/**
 * Providers whose tokens log in to a project over HTTP. Once a token is verified by the provider's keys, Catnap logs in
 * to the compute as the role that the caller names, with the password that it keeps for the role.
 */
import { randomUUID } from 'node:crypto';
import { selectBranches } from '../db/branches.ts';
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import {
  deleteKeySet,
  insertKeySet,
  type KeySetRow,
  selectKeySets,
  selectTokenLogins,
  type TokenLoginRow,
} from '../db/key-sets.ts';
import { selectRoles } from '../db/roles.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import { type BranchId, type EndpointId, isUuid, type ProjectId } from '../lib/ids.ts';
import { outboundPolicy, refusalOfUrl } from '../lib/outbound.ts';
import { type Caller, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import { queueCatalogChange } from './catalog.ts';
import type { CommandScope, Core, Scope } from './context.ts';
import type { Operation } from './operation.ts';
import { insertNewRole, openPassword, requireRoleName } from './role.ts';

export type KeySet = KeySetRow;

const keySetsMax = 20;
const defaultRoles = ['authenticator', 'authenticated', 'anonymous'];

export interface KeySetInput {
  readonly projectId: ProjectId;
  readonly branchId: BranchId | null;
  readonly jwksUrl: string;
  readonly providerName: string;
  readonly jwtAudience: string | null;
  /** Null, or an empty list, for the usual ones. */
  readonly roleNames: readonly string[] | null;
  readonly skipRoleCreation: boolean;
}

export async function addKeySet(
  scope: CommandScope,
  caller: Caller,
  input: KeySetInput,
): Promise<{ readonly keySet: KeySet; readonly operations: readonly Operation[] }> {
  const project = await requireProjectLocked(scope, caller, input.projectId);
  if (input.branchId !== null) await requireBranch(scope, project.id, input.branchId);
  const refusal = refusalOfUrl(input.jwksUrl, outboundPolicy(scope.config));
  if (refusal !== null) throw invalid(`invalid request: body.jwks_url ${refusal}`);
  const given = input.roleNames ?? [];
  const roleNames = given.length === 0 ? defaultRoles : [...new Set(given)];
  for (const name of roleNames) requireRoleName(name, 'body.role_names');
  if (!project.storePasswords) {
    throw new CatnapError('unprocessable', 'tokens need a project that stores passwords (store_passwords)');
  }
  if ((await selectKeySets(scope.tx, project.id)).length >= keySetsMax) {
    throw new CatnapError('unprocessable', `a project has at most ${keySetsMax} key sets`);
  }
  const { branchId, jwksUrl, providerName, jwtAudience } = input;
  const keySet = await insertKeySet(scope.tx, {
    id: randomUUID(),
    projectId: project.id,
    branchId,
    jwksUrl,
    providerName,
    jwtAudience,
    roleNames,
  });
  const operations = input.skipRoleCreation ? [] : await makeRoles(scope, keySet);
  return { keySet, operations };
}

/**
 * Makes the roles that are missing in the branches concerned. A branch that is asleep gets them with its next start,
 * which comes before any login: adding a key set wakes nothing.
 */
async function makeRoles(scope: CommandScope, { projectId, branchId, roleNames }: KeySet): Promise<Operation[]> {
  const operations: Operation[] = [];
  const all = { search: null, sortBy: 'created_at', descending: false, after: null, limit: null } as const;
  for (const branch of await selectBranches(scope.tx, projectId, all)) {
    if (branchId !== null && branch.id !== branchId) continue;
    const existing = new Set((await selectRoles(scope.tx, branch.id)).map(({ name }) => name));
    const missing = roleNames.filter((name) => !existing.has(name));
    for (const name of missing) {
      await insertNewRole(scope, {
        projectId,
        branchId: branch.id,
        name,
        noLogin: false,
        storePassword: true,
        limited: true,
      });
    }
    const endpoint = await selectReadWriteEndpoint(scope.tx, branch.id);
    const isAsleep = endpoint?.currentState === 'idle' && endpoint.pendingState === null;
    if (missing.length > 0 && !isAsleep) operations.push(...(await queueCatalogChange(scope, branch)));
  }
  return operations;
}

export async function listKeySets(scope: Scope, caller: Caller, projectId: ProjectId): Promise<KeySet[]> {
  await requireProject(scope, caller, projectId);
  return selectKeySets(scope.sql, projectId);
}

/** Its roles stay: they may own things. */
export async function removeKeySet(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  id: string,
): Promise<KeySet> {
  await requireProjectLocked(scope, caller, projectId);
  const removed = isUuid(id) ? await deleteKeySet(scope.tx, projectId, id) : undefined;
  if (removed === undefined) throw notFound('JWKS');
  return removed;
}

/** The key sets by which a token may log in as the role; none when the endpoint or the role does not exist. */
export function findTokenLogins(core: Core, endpointId: EndpointId, role: string): Promise<TokenLoginRow[]> {
  return selectTokenLogins(core.database.sql, endpointId, role);
}

/** For a token that was verified by one of these. */
export function passwordForToken(core: Core, role: string, [login]: readonly TokenLoginRow[]): string {
  const password = login === undefined ? null : openPassword(core, login.projectId, { ...login, name: role });
  if (password !== null) return password;
  throw new CatnapError(
    'unprocessable',
    withDetails('Catnap does not know the password of this role: create it, or reset its password', {
      role_name: role,
    }),
  );
}
