/**
 * Rows of `projects`. A deleted project is invisible to everything but its operations and the statements of
 * `deleted.ts`.
 */
import type { OrganizationId, ProjectId, UserId } from '../lib/ids.ts';
import type { MaintenanceWindow } from '../lib/model.ts';
import { assignments, first, json, one, type Sql, type Tx } from './client.ts';
import type { Usage } from './consumption.ts';
import type { PreloadLibraries } from './endpoints.ts';

export interface DefaultEndpointSettings {
  readonly autoscaling_limit_min_cu: number;
  readonly autoscaling_limit_max_cu: number;
  readonly suspend_timeout_seconds: number;
  readonly pg_settings?: Readonly<Record<string, string>>;
}

export interface ProjectSettings {
  readonly allowed_ips: { readonly ips: readonly string[]; readonly protected_branches_only: boolean };
  readonly preload_libraries?: PreloadLibraries;
  readonly enable_logical_replication: boolean;
  readonly maintenance_window: MaintenanceWindow;
  readonly block_public_connections: boolean;
  /** Absent, which is false, in projects from before there was such a choice. */
  readonly allow_outbound_connections?: boolean;
  readonly block_vpc_connections: boolean;
  readonly hipaa: boolean;
  /** Never stored: every value is refused. */
  readonly audit_log_level?: string;
  readonly quota?: Readonly<Record<string, number>>;
}

export interface ProjectRow {
  readonly id: ProjectId;
  readonly organizationId: OrganizationId;
  readonly ownerId: UserId;
  readonly name: string;
  readonly regionId: string;
  readonly pgVersion: number;
  readonly storePasswords: boolean;
  readonly historyRetentionSeconds: number;
  readonly settings: ProjectSettings;
  readonly defaultEndpointSettings: DefaultEndpointSettings;
  readonly tenantUid: number | null;
  readonly adminSecret: Uint8Array;
  /** Counters of one month. */
  readonly usage: Usage;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly deletingAt: Date | null;
  /** Of a deleted project that has not been removed for good yet. */
  readonly recoverableUntil: Date | null;
}

export type NewProject = Omit<
  ProjectRow,
  'tenantUid' | 'usage' | 'createdAt' | 'updatedAt' | 'deletingAt' | 'recoverableUntil'
>;

/** Gives it the next uid, counted from the first; null where tenants have none of their own. */
export async function insertProject(sql: Sql, project: NewProject, firstTenantUid: number | null): Promise<ProjectRow> {
  const { id, organizationId, ownerId, name, regionId, pgVersion, storePasswords, historyRetentionSeconds } = project;
  const tenantUid = firstTenantUid === null ? sql`null` : sql`${firstTenantUid}::int + nextval('tenant_numbers')::int`;
  return one(
    await sql<ProjectRow[]>`
      insert into projects (id, organization_id, owner_id, name, region_id, pg_version, store_passwords,
        history_retention_seconds, settings, default_endpoint_settings, admin_secret, tenant_uid)
      values (${id}, ${organizationId}, ${ownerId}, ${name}, ${regionId}, ${pgVersion}, ${storePasswords},
        ${historyRetentionSeconds}, ${json(sql, project.settings)}, ${json(sql, project.defaultEndpointSettings)},
        ${project.adminSecret}, ${tenantUid})
      returning *`,
  );
}

export async function nextTenantNumber(sql: Sql): Promise<number> {
  return one(await sql<{ number: number }[]>`select nextval('tenant_numbers')::int as number`).number;
}

/** In seconds, and at least a day: as long as some project's past can be asked for, the system database's can too. */
export async function selectLongestRetention(sql: Sql): Promise<number> {
  const rows = await sql<{ seconds: number }[]>`
    select greatest(86400, coalesce(max(history_retention_seconds), 0))::int as seconds from projects`;
  return one(rows).seconds;
}

/** With a `member`, only a project of an organization that this user belongs to. */
export const seenBy = (sql: Sql, member: UserId | null) =>
  member === null
    ? sql``
    : sql`and exists (
        select 1 from organization_members m where m.organization_id = p.organization_id and m.user_id = ${member})`;

export async function selectProject(
  sql: Sql,
  id: ProjectId,
  member: UserId | null = null,
): Promise<ProjectRow | undefined> {
  return first(
    await sql<ProjectRow[]>`
      select p.* from projects p where p.id = ${id} and p.deleting_at is null ${seenBy(sql, member)}`,
  );
}

/** For operations, which still work on a project that is being deleted. */
export async function selectProjectInAnyState(sql: Sql, id: ProjectId): Promise<ProjectRow | undefined> {
  return first(await sql<ProjectRow[]>`select * from projects where id = ${id}`);
}

/**
 * Holds the project for the rest of the transaction. Every command that queues operations takes it first, so the order
 * of operations of one project is the order of its commits.
 */
export async function lockProject(
  tx: Tx,
  id: ProjectId,
  member: UserId | null = null,
): Promise<ProjectRow | undefined> {
  return first(
    await tx<ProjectRow[]>`
      select p.* from projects p where p.id = ${id} and p.deleting_at is null ${seenBy(tx, member)} for update of p`,
  );
}

/** As `lockProject`, for the outcome of an operation, which may belong to a project that is being deleted. */
export async function lockProjectInAnyState(tx: Tx, id: ProjectId): Promise<void> {
  await tx`select 1 from projects where id = ${id} for update`;
}

export interface ProjectQuery {
  readonly organizationIds: readonly OrganizationId[];
  readonly projectId: ProjectId | null;
  readonly search: string | null;
  readonly after: string | null;
  readonly limit: number;
  /** Deleted projects that can still be recovered at this time, instead of the others. */
  readonly recoverableAt: Date | null;
}

/** Ordered by id, which is also the cursor. */
export async function selectProjects(sql: Sql, query: ProjectQuery): Promise<ProjectRow[]> {
  const pattern = query.search === null ? null : `%${query.search.replace(/[\\%_]/g, '\\$&')}%`;
  return sql<ProjectRow[]>`
    select * from projects
    where ${query.recoverableAt === null ? sql`deleting_at is null` : sql`recoverable_until > ${query.recoverableAt}`}
      and organization_id = any(${[...query.organizationIds]})
      and (${query.projectId}::text is null or id = ${query.projectId})
      and (${pattern}::text is null or name ilike ${pattern} or id ilike ${pattern})
      and (${query.after}::text is null or id > ${query.after})
    order by id limit ${query.limit}`;
}

/** What lists show of a project besides its row. */
export interface ProjectContents {
  readonly branches: number;
  readonly endpoints: number;
  /** Of those, the computes that are awake. */
  readonly active: number;
  readonly lastActive: Date | null;
}

/** By project; counts only what has not been deleted. */
export async function selectProjectContents(
  sql: Sql,
  ids: readonly ProjectId[],
): Promise<ReadonlyMap<ProjectId, ProjectContents>> {
  const rows = await sql<(ProjectContents & { projectId: ProjectId })[]>`
    select p.id as project_id, e.endpoints, e.active, e.last_active, (
        select count(*)::int from branches b where b.project_id = p.id and b.deleting_at is null) as branches
    from unnest(${[...ids]}::text[]) as p (id) cross join lateral (
      select count(*)::int as endpoints, max(last_active) as last_active,
        count(*) filter (where current_state = 'active')::int as active
      from endpoints where project_id = p.id and deleting_at is null) e`;
  return new Map(rows.map(({ projectId, ...contents }) => [projectId, contents]));
}

/** Those with a limit of any kind. */
export async function selectProjectIdsWithQuota(sql: Sql): Promise<ProjectId[]> {
  const rows = await sql<{ id: ProjectId }[]>`
    select id from projects where settings -> 'quota' is not null and deleting_at is null`;
  return rows.map(({ id }) => id);
}

export async function countProjects(sql: Sql, organizationId: OrganizationId): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from projects where organization_id = ${organizationId} and deleting_at is null`,
  ).count;
}

export async function countAllProjects(sql: Sql): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*)::int as count from projects where deleting_at is null`)
    .count;
}

export type ProjectChange = Partial<
  Pick<ProjectRow, 'name' | 'settings' | 'defaultEndpointSettings' | 'historyRetentionSeconds'>
>;

export async function updateProject(sql: Sql, id: ProjectId, change: ProjectChange): Promise<ProjectRow> {
  const settings = change.settings && json(sql, change.settings);
  const defaultEndpointSettings = change.defaultEndpointSettings && json(sql, change.defaultEndpointSettings);
  const changed = assignments(sql, { ...change, settings, defaultEndpointSettings });
  return one(await sql<ProjectRow[]>`update projects ${changed} where id = ${id} returning *`);
}

/** `null` for both brings it back; a time without `until` is on its way out for good. */
export async function markProject(
  sql: Sql,
  id: ProjectId,
  { deletingAt, recoverableUntil }: Pick<ProjectRow, 'deletingAt' | 'recoverableUntil'>,
): Promise<ProjectRow> {
  return one(
    await sql<ProjectRow[]>`
      update projects set deleting_at = ${deletingAt}, recoverable_until = ${recoverableUntil}, updated_at = now()
      where id = ${id} returning *`,
  );
}

/** Takes branches, endpoints, roles, databases, keys and operations with it. */
export async function deleteProjectRow(sql: Sql, id: ProjectId): Promise<void> {
  await sql`delete from endpoints where project_id = ${id}`;
  await sql`delete from branches where project_id = ${id}`;
  await sql`delete from transfers where project_id = ${id}`;
  await sql`delete from projects where id = ${id}`;
}
