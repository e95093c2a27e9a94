/** Projects: row to wire, request to input. */
import type { Static } from 'typebox';
import { proxyHostname } from '../../core/connection-uri.ts';
import { planOf } from '../../core/plan.ts';
import {
  type getProject,
  type listProjects,
  type Project,
  type ProjectChangeInput,
  type ProjectPage,
  periodBounds,
  usageAt,
} from '../../core/project.ts';
import type { CreatedProject, ProjectInput } from '../../core/project-create.ts';
import { spentQuota } from '../../core/quota.ts';
import { provisioner } from '../../core/single-values.ts';
import { asOrganizationId } from '../../lib/ids.ts';
import type { ApiConfig } from '../kit/parts.ts';
import type {
  ProjectCreateReply,
  ProjectListItem,
  Project as ProjectSchema,
  ProjectsQuery,
  ProjectsReply,
  ProjectUpdateBody,
  projectCreateBody,
} from '../schemas/project.ts';
import type { DefaultEndpointSettings, ProjectSettings } from '../schemas/settings.ts';
import { limitOf, subscriptionTypes } from './account.ts';
import { branchView, usageView, whole } from './branch.ts';
import { optionalTime, present, time } from './common.ts';
import { connectionView } from './connection-uri.ts';
import { databaseView } from './database.ts';
import { endpointView } from './endpoint.ts';
import { operationViews } from './operation.ts';
import { roleView } from './role.ts';

type ProjectView = Static<typeof ProjectSchema>;

/** Not enforced: the disk is the limit. */
const branchSizeLimitMib = 16 * 1024 * 1024;

function sharedView(config: ApiConfig, row: Project, now: Date) {
  return {
    id: row.id,
    platform_id: config.driver,
    region_id: row.regionId,
    name: row.name,
    provisioner,
    default_endpoint_settings: row.defaultEndpointSettings,
    settings: settingsView(config, row),
    pg_version: row.pgVersion,
    proxy_host: proxyHostname(config),
    branch_logical_size_limit: branchSizeLimitMib,
    branch_logical_size_limit_bytes: branchSizeLimitMib * 1024 * 1024,
    store_passwords: row.storePasswords,
    cpu_used_sec: whole(usageAt(row.usage, now).cpu),
    creation_source: 'console',
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
    owner_id: row.ownerId,
    org_id: row.organizationId,
  };
}

/** Where computes have the machine's network, SQL in them connects to anything, whatever was asked for. */
function settingsView({ networkProblem }: ApiConfig, { settings }: Project): Static<typeof ProjectSettings> {
  const allow_outbound_connections = networkProblem !== null || (settings.allow_outbound_connections ?? false);
  return { ...(settings as Static<typeof ProjectSettings>), allow_outbound_connections };
}

export function projectView(config: ApiConfig, row: Project, now: Date): ProjectView {
  const usage = usageAt(row.usage, now);
  const { start, end } = periodBounds(now);
  return {
    ...sharedView(config, row, now),
    ...usageView(usage),
    data_storage_bytes_hour: whole(usage.storage),
    history_retention_seconds: row.historyRetentionSeconds,
    consumption_period_start: time(start),
    consumption_period_end: time(end),
    quota_reset_at: time(end),
    ...spentView(row, now),
  };
}

function spentView(row: Project, now: Date): Pick<ProjectView, 'quota_exceeded'> {
  const spent = spentQuota(row, now);
  if (spent === null) return {};
  const { name, limit, used, message, resetsAt } = spent;
  return { quota_exceeded: { name, limit, used, resets_at: time(resetsAt), message } };
}

export function ownedProjectView(
  config: ApiConfig,
  found: Awaited<ReturnType<typeof getProject>>,
  now: Date,
): ProjectView {
  const plan = planOf(found.organization.plan);
  return {
    ...projectView(config, found.project, now),
    ...lastActiveView(found.contents),
    owner: {
      email: found.owner.email,
      name: found.owner.name,
      branches_limit: limitOf(plan.branchesPerProjectMax),
      subscription_type: subscriptionTypes[plan.name],
    },
  };
}

type Contents = NonNullable<Awaited<ReturnType<typeof getProject>>['contents']>;

const lastActiveView = (contents: Contents | undefined) =>
  present({ compute_last_active_at: optionalTime(contents?.lastActive ?? null) });

/** What a deleted project had is deleted with it, and not counted. */
const countsView = (contents: Contents | undefined, { deletingAt }: Project) =>
  contents === undefined || deletingAt !== null
    ? {}
    : {
        branches_count: contents.branches,
        endpoints_count: contents.endpoints,
        active_endpoints_count: contents.active,
      };

export function projectsView(
  config: ApiConfig,
  list: Awaited<ReturnType<typeof listProjects>>,
  now: Date,
): Static<typeof ProjectsReply> {
  const projects: Static<typeof ProjectListItem>[] = list.projects.map((row) => ({
    ...sharedView(config, row, now),
    active_time: whole(usageAt(row.usage, now).active),
    ...lastActiveView(list.contents.get(row.id)),
    ...countsView(list.contents.get(row.id), row),
    history_retention_seconds: row.historyRetentionSeconds,
    ...present({
      org_name: list.organizations.get(row.organizationId)?.name,
      deleted_at: optionalTime(row.deletingAt),
      recoverable_until: optionalTime(row.recoverableUntil),
    }),
  }));
  const last = projects.at(-1);
  return {
    projects,
    ...(last === undefined ? {} : { pagination: { cursor: last.id } }),
    applications: {},
    integrations: {},
  };
}

export function createdProjectView(
  config: ApiConfig,
  made: CreatedProject,
  now: Date,
): Static<typeof ProjectCreateReply> {
  return {
    project: projectView(config, made.project, now),
    connection_uris: [connectionView(made.connection)],
    roles: [roleView(made.role, made.password)],
    databases: [databaseView(made.database)],
    operations: operationViews(made.operations),
    branch: branchView(made.branch, now),
    endpoints: [endpointView(config, made.endpoint)],
  };
}

export function projectPage(query: Static<typeof ProjectsQuery>): ProjectPage {
  return {
    organizationId: query.org_id === undefined ? null : asOrganizationId(query.org_id),
    search: query.search ?? null,
    cursor: query.cursor ?? null,
    limit: query.limit ?? 10,
    recoverable: query.recoverable ?? false,
  };
}

export function projectInput({ project }: Static<ReturnType<typeof projectCreateBody>>): ProjectInput {
  const defaults = endpointDefaults(project.default_endpoint_settings);
  return {
    name: project.name,
    organizationId: project.org_id === undefined ? null : asOrganizationId(project.org_id),
    regionId: project.region_id,
    pgVersion: project.pg_version,
    storePasswords: project.store_passwords,
    historyRetentionSeconds: project.history_retention_seconds,
    provisioner: project.provisioner,
    settings: project.settings as ProjectInput['settings'],
    endpointDefaults: {
      ...defaults,
      minCu: defaults?.minCu ?? project.autoscaling_limit_min_cu,
      maxCu: defaults?.maxCu ?? project.autoscaling_limit_max_cu,
    },
    branchName: project.branch?.name,
    databaseName: project.branch?.database_name,
    roleName: project.branch?.role_name,
    annotation: project.branch?.annotations ?? {},
  };
}

export function projectChange({ project }: Static<typeof ProjectUpdateBody>): ProjectChangeInput {
  return {
    name: project.name,
    settings: project.settings as ProjectChangeInput['settings'],
    endpointDefaults: endpointDefaults(project.default_endpoint_settings),
    historyRetentionSeconds: project.history_retention_seconds,
  };
}

function endpointDefaults(settings: Static<typeof DefaultEndpointSettings> | undefined) {
  return (
    settings && {
      minCu: settings.autoscaling_limit_min_cu,
      maxCu: settings.autoscaling_limit_max_cu,
      suspendTimeoutSeconds: settings.suspend_timeout_seconds,
      pgSettings: settings.pg_settings,
      pgbouncerSettings: settings.pgbouncer_settings,
    }
  );
}
