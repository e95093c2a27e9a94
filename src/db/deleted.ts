/** What was deleted and can still be recovered, and what of it is due to be removed for good. */
import type { BranchId, OrganizationId, ProjectId, UserId } from '../lib/ids.ts';
import type { BranchRow, DeletionMethod } from './branches.ts';
import { first, one, type Sql, type Tx } from './client.ts';
import type { EndpointRow } from './endpoints.ts';
import { unfinished } from './operations.ts';
import { type ProjectRow, seenBy } from './projects.ts';

/** A project in whatever state, held for the rest of the transaction. */
export async function lockAnyProject(
  tx: Tx,
  id: ProjectId,
  member: UserId | null = null,
): Promise<ProjectRow | undefined> {
  return first(
    await tx<ProjectRow[]>`select p.* from projects p where p.id = ${id} ${seenBy(tx, member)} for update of p`,
  );
}

/** Computes of a branch, without those that are being removed already. */
export async function selectEndpointsToRemove(sql: Sql, branchId: BranchId): Promise<EndpointRow[]> {
  return sql<EndpointRow[]>`
    select * from endpoints
    where branch_id = ${branchId} and (deleting_at is null or recoverable_until is not null) order by created_at, id`;
}

/** Computes come back with their branch; those that were deleted before it do not. */
export async function recoverEndpoints(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`
    update endpoints set deleting_at = null, recoverable_until = null, updated_at = now()
    where branch_id = ${branchId} and recoverable_until is not null`;
}

/** Users may have changed at a provider elsewhere while nobody read them. */
export async function readUsersAnew(sql: Sql, projectId: ProjectId): Promise<void> {
  await sql`update auth_integrations set poll_at = now() where project_id = ${projectId}`;
}

export interface DeletedThing {
  readonly kind: 'project' | 'branch';
  readonly projectId: ProjectId;
  readonly projectName: string;
  readonly branchId: BranchId | null;
  readonly name: string;
  /** As last measured; of a project, all its branches. */
  readonly logicalSize: number | null;
  readonly deletedAt: Date;
  readonly recoverableUntil: Date;
  readonly deletionMethod: DeletionMethod;
}

/** Projects, and branches of projects that are not deleted themselves; what was deleted last comes first. */
export async function selectDeletedThings(
  sql: Sql,
  of: { readonly organizationIds: readonly OrganizationId[]; readonly projectId: ProjectId | null; readonly now: Date },
): Promise<DeletedThing[]> {
  const mine = sql`
    p.organization_id = any(${[...of.organizationIds]}) and (${of.projectId}::text is null or p.id = ${of.projectId})`;
  return sql<DeletedThing[]>`
    select 'project' as kind, p.id as project_id, p.name as project_name, null as branch_id, p.name,
      (select sum(b.logical_size)::bigint from branches b where b.project_id = p.id) as logical_size,
      p.deleting_at as deleted_at, p.recoverable_until, 'user' as deletion_method
    from projects p where p.recoverable_until > ${of.now} and ${mine}
    union all
    select 'branch', p.id, p.name, b.id, b.name, b.logical_size, b.deleting_at, b.recoverable_until, b.deletion_method
    from branches b join projects p on p.id = b.project_id and p.deleting_at is null
    where b.recoverable_until > ${of.now} and ${mine}
    order by deleted_at desc, project_id, branch_id`;
}

export async function selectProjectsToPurge(sql: Sql, now: Date): Promise<ProjectId[]> {
  const rows = await sql<{ id: ProjectId }[]>`select id from projects where recoverable_until <= ${now}`;
  return rows.map(({ id }) => id);
}

/** A parent waits for its children, which were deleted before it. */
export async function selectBranchesToPurge(sql: Sql, now: Date): Promise<Pick<BranchRow, 'id' | 'projectId'>[]> {
  return sql`
    select b.id, b.project_id from branches b where b.recoverable_until <= ${now}
      and not exists (select 1 from branches c where c.parent_id = b.id)`;
}

/** Computes of deleted things that are awake although nothing is queued that stops them: that was given up. */
export async function selectAwakeThoughDeleted(sql: Sql): Promise<Pick<EndpointRow, 'id' | 'projectId'>[]> {
  return sql`
    select e.id, e.project_id from endpoints e join projects p on p.id = e.project_id
    where e.current_state = 'active' and (e.recoverable_until is not null or p.recoverable_until is not null)
      and not exists (select 1 from operations o where o.endpoint_id = e.id and o.status in ${unfinished(sql)})`;
}

export async function hasAnythingToPurge(sql: Sql): Promise<boolean> {
  return one(
    await sql<{ found: boolean }[]>`
      select exists (select 1 from projects where recoverable_until is not null)
        or exists (select 1 from branches where recoverable_until is not null) as found`,
  ).found;
}

/** Branches that are deleted, alone or with their project, and can be recovered: what a purge would remove. */
export async function selectBranchesBeforePurge(sql: Sql): Promise<Pick<BranchRow, 'id' | 'projectId'>[]> {
  return sql`
    select b.id, b.project_id from branches b join projects p on p.id = b.project_id
    where b.recoverable_until is not null or p.recoverable_until is not null`;
}
