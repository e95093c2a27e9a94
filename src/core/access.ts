/**
 * The caller of a request, and what it may see. A personal key reaches the organizations of its user, an organization
 * key its organization, a project key one project without the rights to delete it or to mint keys. What a caller may
 * not see is answered as if it did not exist.
 */

import { type OrganizationRow, selectOrganization, selectOrganizationsOfUser } from '../db/accounts.ts';
import type { ApiKeyKind, ApiKeyScope } from '../db/api-keys.ts';
import { type BranchRow, selectBranch } from '../db/branches.ts';
import { lockAnyProject } from '../db/deleted.ts';
import { type EndpointRow, selectEndpoint } from '../db/endpoints.ts';
import { lockProject, type ProjectRow, selectProject } from '../db/projects.ts';
import { CatnapError, invalid, notFound } from '../lib/errors.ts';
import type { BranchId, EndpointId, OrganizationId, ProjectId, UserId } from '../lib/ids.ts';
import type { CommandScope, Scope } from './context.ts';
import { type Plan, planOf } from './plan.ts';

export interface Caller {
  readonly keyId: number;
  readonly kind: ApiKeyKind;
  readonly scope: ApiKeyScope;
  readonly expiresAt: Date | null;
  /** The user of the key: its owner, or the person who created it. */
  readonly userId: UserId;
  /** Set for organization and project keys. */
  readonly organizationId: OrganizationId | null;
  /** Set for project keys. */
  readonly projectId: ProjectId | null;
}

export type Right = 'edit' | 'manage';

/** Refuses keys of organizations and projects, for what belongs to a person. */
export function requirePersonal(caller: Caller): void {
  if (caller.kind === 'organization') throw new CatnapError('forbidden', 'not allowed for organization API keys');
  if (caller.kind === 'project') throw new CatnapError('forbidden', 'not allowed for project-scoped API keys');
}

export async function organizationsOf(scope: Scope, caller: Caller): Promise<OrganizationRow[]> {
  if (caller.organizationId === null) return selectOrganizationsOfUser(scope.sql, caller.userId);
  const organization = await selectOrganization(scope.sql, caller.organizationId);
  return organization === undefined ? [] : [organization];
}

export async function requireOrganization(scope: Scope, caller: Caller, id: OrganizationId): Promise<OrganizationRow> {
  const organization = (await organizationsOf(scope, caller)).find((candidate) => candidate.id === id);
  if (organization === undefined) throw notFound('organization');
  return organization;
}

/** Without an id, the caller's only organization; a caller with several must name one. */
export async function resolveOrganization(
  scope: Scope,
  caller: Caller,
  id: OrganizationId | null,
): Promise<OrganizationRow> {
  if (id !== null) return requireOrganization(scope, caller, id);
  const [only, ...others] = await organizationsOf(scope, caller);
  if (only === undefined || others.length > 0) {
    throw invalid('org_id is required, you can find it on your organization settings page');
  }
  return only;
}

export async function requireProject(
  scope: Scope,
  caller: Caller,
  id: ProjectId,
  right: Right = 'edit',
): Promise<ProjectRow> {
  return requireVisible(caller, await selectProject(scope.sql, id, memberOf(caller)), right);
}

/** As `requireProject`, and holds the project until the command's transaction ends. */
export async function requireProjectLocked(
  scope: CommandScope,
  caller: Caller,
  id: ProjectId,
  right: Right = 'edit',
): Promise<ProjectRow> {
  return requireVisible(caller, await lockProject(scope.tx, id, memberOf(caller)), right);
}

/** As `requireProjectLocked`, for a project that may have been deleted. */
export async function requireAnyProjectLocked(
  scope: CommandScope,
  caller: Caller,
  id: ProjectId,
  right: Right = 'edit',
): Promise<ProjectRow> {
  return requireVisible(caller, await lockAnyProject(scope.tx, id, memberOf(caller)), right);
}

/** A personal key sees the projects of its user's organizations, and the statements that find one check that. */
const memberOf = ({ kind, userId }: Caller) => (kind === 'personal' ? userId : null);

/** `project` was found for `memberOf` the caller. */
function requireVisible(caller: Caller, project: ProjectRow | undefined, right: Right): ProjectRow {
  if (project === undefined || !isInReach(caller, project)) throw notFound('project');
  if (right === 'manage' && caller.kind === 'project') {
    throw new CatnapError('forbidden', 'not allowed for project-scoped API keys');
  }
  return project;
}

function isInReach(caller: Caller, project: ProjectRow): boolean {
  switch (caller.kind) {
    case 'project':
      return caller.projectId === project.id;
    case 'organization':
      return caller.organizationId === project.organizationId;
    case 'personal':
      return true;
  }
}

/** The plan that limits a project: its organization's. */
export async function planOfProject(scope: Scope, project: Pick<ProjectRow, 'organizationId'>): Promise<Plan> {
  const organization = await selectOrganization(scope.sql, project.organizationId);
  return planOf(organization?.plan ?? scope.config.defaultPlan);
}

export async function requireBranch(scope: Scope, projectId: ProjectId, id: BranchId): Promise<BranchRow> {
  const branch = await selectBranch(scope.sql, projectId, id);
  if (branch === undefined) throw notFound('branch');
  return branch;
}

export async function requireEndpoint(scope: Scope, projectId: ProjectId, id: EndpointId): Promise<EndpointRow> {
  const endpoint = await selectEndpoint(scope.sql, projectId, id);
  if (endpoint === undefined) throw notFound('endpoint');
  return endpoint;
}
