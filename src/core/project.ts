/** Projects: listed, changed, deleted. `project-create.ts` makes them. */

import { type OrganizationRow, selectOrganization, selectUser } from '../db/accounts.ts';
import { notifyKeysChanged } from '../db/api-keys.ts';
import { forgetCatalogsKept, selectProtectedBranch } from '../db/branches.ts';
import { periodBounds, periodOf, usageAt } from '../db/consumption.ts';
import { selectEndpoints } from '../db/endpoints.ts';
import { notifyAccessChanged } from '../db/logins.ts';
import {
  type DefaultEndpointSettings,
  lockProject,
  markProject,
  type ProjectContents,
  type ProjectRow,
  type ProjectSettings,
  selectProjectContents,
  selectProjects,
  updateProject,
} from '../db/projects.ts';
import { endStorage, selectStoredOfMonth } from '../db/storage.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import type { OrganizationId, ProjectId } from '../lib/ids.ts';
import { type Caller, organizationsOf, requireOrganization, requireProject, requireProjectLocked } from './access.ts';
import type { User } from './account.ts';
import type { CommandScope, Scope } from './context.ts';
import { deletionTimes, queueStops, removeProjectForGood } from './deletion.ts';
import { requireSuspendTimeout } from './endpoint.ts';
import { requireNoPoolerSettings, requirePreloadLibraries } from './endpoint-settings.ts';
import { queueProjectChange } from './endpoint-update.ts';
import { cancelStarts, enqueue, type Operation } from './operation.ts';
import { requireMaintenanceWindow } from './pending-update.ts';
import { requirePgSettings } from './pg-settings.ts';
import { planOf } from './plan.ts';
import { requireSingleValues } from './single-values.ts';
import { defaultSize, requireSize, resolveSize } from './sizing.ts';

export type Project = ProjectRow;
export type { DefaultEndpointSettings, ProjectSettings };
export { periodBounds, usageAt };

/** What the sealed password of Catnap's own login in a project's servers is bound to. */
export const adminSecretSealContext = (id: ProjectId) => `admin:${id}`;

export interface EndpointDefaultsInput {
  readonly minCu?: number | undefined;
  readonly maxCu?: number | undefined;
  readonly suspendTimeoutSeconds?: number | undefined;
  readonly pgSettings?: Readonly<Record<string, string>> | undefined;
  readonly pgbouncerSettings?: Readonly<Record<string, string>> | undefined;
}

export interface ProjectPage {
  readonly organizationId: OrganizationId | null;
  readonly search: string | null;
  readonly cursor: string | null;
  readonly limit: number;
  /** Deleted projects that can be recovered, instead of the others. */
  readonly recoverable: boolean;
}

export async function listProjects(
  scope: Scope,
  caller: Caller,
  page: ProjectPage,
): Promise<{
  readonly projects: Project[];
  readonly organizations: ReadonlyMap<OrganizationId, OrganizationRow>;
  readonly contents: ReadonlyMap<ProjectId, ProjectContents>;
}> {
  const organizations =
    page.organizationId === null
      ? await organizationsOf(scope, caller)
      : [await requireOrganization(scope, caller, page.organizationId)];
  if (page.organizationId === null && organizations.length > 1) {
    throw invalid('org_id is required, you can find it on your organization settings page');
  }
  const projects = await selectProjects(scope.sql, {
    organizationIds: organizations.map((organization) => organization.id),
    projectId: caller.projectId,
    search: page.search,
    after: page.cursor,
    limit: page.limit,
    recoverableAt: page.recoverable ? scope.clock.now() : null,
  });
  return {
    projects,
    organizations: new Map(organizations.map((organization) => [organization.id, organization])),
    contents: await selectProjectContents(
      scope.sql,
      projects.map(({ id }) => id),
    ),
  };
}

export async function getProject(
  scope: Scope,
  caller: Caller,
  id: ProjectId,
): Promise<{
  readonly project: Project;
  readonly owner: User;
  readonly organization: OrganizationRow;
  readonly contents: ProjectContents | undefined;
}> {
  const project = await requireProject(scope, caller, id);
  const owner = await selectUser(scope.sql, project.ownerId);
  const organization = await selectOrganization(scope.sql, project.organizationId);
  if (owner === undefined || organization === undefined) throw notFound('project');
  const contents = (await selectProjectContents(scope.sql, [id])).get(id);
  return { project: await withStored(scope, project), owner, organization, contents };
}

/** Its counters of the month, with what its branches have stored since their sizes last changed. */
export async function withStored({ sql, clock }: Scope, project: Project): Promise<Project> {
  const now = clock.now();
  const storage = await selectStoredOfMonth(sql, project.id, now);
  return { ...project, usage: { ...usageAt(project.usage, now), period: periodOf(now), storage } };
}

export interface ProjectChangeInput {
  readonly name?: string | undefined;
  readonly settings?: Partial<ProjectSettings> | undefined;
  readonly endpointDefaults?: EndpointDefaultsInput | undefined;
  readonly historyRetentionSeconds?: number | undefined;
}

/** Default compute settings affect only computes created later; what servers run with changes at once. */
export async function updateProjectOf(
  scope: CommandScope,
  caller: Caller,
  id: ProjectId,
  change: ProjectChangeInput,
): Promise<{ readonly project: Project; readonly operations: readonly Operation[] }> {
  const project = await requireProjectLocked(scope, caller, id);
  if (change.name !== undefined && change.name.trim() === '')
    throw invalid('invalid request: body.project.name must not be blank');
  if (project.settings.enable_logical_replication === true && change.settings?.enable_logical_replication === false) {
    throw invalid('invalid request: body.project.settings.enable_logical_replication cannot be turned off again');
  }
  requireSingleValues(change.settings);
  requirePreloadLibraries(change.settings?.preload_libraries, 'body.project.settings.preload_libraries', scope.config);
  requireMaintenanceWindow(change.settings?.maintenance_window);
  const organization = await selectOrganization(scope.tx, project.organizationId);
  if (organization === undefined) throw notFound('project');
  const changed = await updateProject(scope.tx, id, {
    ...(change.name === undefined ? {} : { name: change.name }),
    ...(change.historyRetentionSeconds === undefined
      ? {}
      : { historyRetentionSeconds: change.historyRetentionSeconds }),
    ...(change.settings === undefined
      ? {}
      : {
          settings: {
            ...project.settings,
            ...change.settings,
            allowed_ips: mergeAllowedIps(project.settings, change.settings),
          },
        }),
    ...(change.endpointDefaults === undefined
      ? {}
      : {
          defaultEndpointSettings: resolveEndpointDefaults(
            scope,
            organization,
            project.defaultEndpointSettings,
            change.endpointDefaults,
          ),
        }),
  });
  if (change.settings?.allowed_ips !== undefined || change.settings?.block_public_connections !== undefined) {
    await notifyAccessChanged(scope.tx, id);
  }
  const isNowLogical = changed.settings.enable_logical_replication && !project.settings.enable_logical_replication;
  // Roles get their new rights with the next session that Catnap opens in the server: there must be one.
  if (isNowLogical) await forgetCatalogsKept(scope.tx, id);
  const operations = await queueProjectChange(scope, project, changed);
  const shown = await withStored(scope, changed);
  if (changed.historyRetentionSeconds === project.historyRetentionSeconds) return { project: shown, operations };
  return {
    project: shown,
    operations: [await enqueue(scope, 'apply_storage_config', { projectId: id }), ...operations],
  };
}

/** The project leaves every list at once and its computes are stopped; the rest waits for its recovery. */
export async function deleteProject(scope: CommandScope, caller: Caller, id: ProjectId): Promise<Project> {
  await requireProject(scope, caller, id, 'manage');
  const project = await lockProject(scope.tx, id);
  if (project === undefined) throw notFound('project');
  const guarded = await selectProtectedBranch(scope.tx, id);
  if (guarded !== undefined) {
    throw new CatnapError(
      'unprocessable',
      withDetails('cannot delete a project with a protected branch', { branch_name: guarded.name }),
    );
  }
  const times = deletionTimes(scope);
  if (times === null) return withStored(scope, await removeProjectForGood(scope, project));
  await cancelStarts(scope.tx, id);
  await queueStops(scope, await selectEndpoints(scope.tx, id));
  await notifyKeysChanged(scope.tx, id);
  await endStorage(scope.tx, { projectId: id }, times.deletingAt);
  return withStored(scope, await markProject(scope.tx, id, times));
}

export function mergeAllowedIps(
  current: ProjectSettings,
  change: Partial<ProjectSettings> | undefined,
): ProjectSettings['allowed_ips'] {
  return { ...current.allowed_ips, ...change?.allowed_ips };
}

/** Missing values come from the current ones, or from the built-in defaults for a new project. */
export function resolveEndpointDefaults(
  scope: Scope,
  organization: OrganizationRow,
  current: DefaultEndpointSettings | null,
  input: EndpointDefaultsInput,
): DefaultEndpointSettings {
  const fallback = current
    ? { minCu: current.autoscaling_limit_min_cu, maxCu: current.autoscaling_limit_max_cu }
    : defaultSize;
  const size = resolveSize(input, fallback);
  requireSize(size, planOf(organization.plan));
  const suspendTimeoutSeconds = input.suspendTimeoutSeconds ?? current?.suspend_timeout_seconds ?? 0;
  requireSuspendTimeout(suspendTimeoutSeconds, planOf(organization.plan), scope.config);
  requireNoPoolerSettings(input.pgbouncerSettings, 'body.project.default_endpoint_settings');
  const pgSettings =
    input.pgSettings === undefined
      ? current?.pg_settings
      : requirePgSettings(input.pgSettings, 'body.project.default_endpoint_settings.pg_settings');
  return {
    autoscaling_limit_min_cu: size.minCu,
    autoscaling_limit_max_cu: size.maxCu,
    suspend_timeout_seconds: suspendTimeoutSeconds,
    ...(pgSettings === undefined ? {} : { pg_settings: pgSettings }),
  };
}
