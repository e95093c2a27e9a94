/**
 * What branches store: bytes times the time that they are there. Each branch has an open span, in which its size has
 * not changed: `metered_size` since `metered_until`. Its storage is worked out when somebody asks. Something is written
 * only when a size has changed, and at a deletion and a recovery: branches that sleep cost nothing, however many.
 */
import type { BranchId, ProjectId } from '../lib/ids.ts';
import type { Fragment, Sql, Tx } from './client.ts';
import { addConsumption, type Part, periodOf } from './consumption.ts';

/** Begins a new span where a branch has another size than its span. The caller holds the projects. */
export async function meterStorage(tx: Tx, now: Date, projectIds: readonly ProjectId[]): Promise<Part[]> {
  const resized = tx`
    project_id = any(${[...projectIds]}) and is_resized and deleting_at is null
    and exists (select 1 from projects p where p.id = project_id and p.deleting_at is null)`;
  return endSpans(tx, now, tx`${resized} for update skip locked`, true);
}

/** One branch, or all of a project that are not deleted themselves. The caller holds the project. */
export interface Stored {
  readonly projectId: ProjectId;
  readonly branchId?: BranchId;
}

/** For a deletion: what is deleted does not count any more. */
export async function endStorage(tx: Tx, of: Stored, now: Date): Promise<void> {
  const open = tx`${partOf(tx, of)} and metered_until is not null order by id for update`;
  await addConsumption(tx, await endSpans(tx, now, open, false), now);
}

/** For a recovery. */
export async function beginStorage(tx: Tx, of: Stored, now: Date): Promise<void> {
  await tx`
    update branches set metered_until = ${now}, metered_size = logical_size
    where ${partOf(tx, of)} and logical_size is not null and metered_until is null`;
}

const partOf = (tx: Tx, { projectId, branchId = undefined }: Stored) =>
  branchId === undefined ? tx`project_id = ${projectId} and deleting_at is null` : tx`id = ${branchId}`;

/** A span within an hour is added to that hour. A longer one is a row: months of sleep are not thousands of hours. */
async function endSpans(tx: Tx, now: Date, chosen: Fragment, goesOn: boolean): Promise<Part[]> {
  return tx<Part[]>`
    with seen as (
      select id, project_id, parent_id is null as is_root, metered_size as bytes, metered_until as since,
        greatest(metered_until, ${now}::timestamptz) as until
      from branches where ${chosen}
    ), moved as (
      update branches b set metered_size = b.logical_size,
        metered_until = case when ${goesOn} and b.logical_size is not null then seen.until end
      from seen where b.id = seen.id
    ), kept as (
      insert into stored_spans (project_id, branch_id, is_root, since, until, bytes)
      select project_id, id, is_root, since, until, bytes from seen where since < date_trunc('hour', until, 'UTC')
      returning branch_id
    ), sums as (
      select project_id, id as branch_id, case when since is null then 0 else bytes * extract(epoch from
        until - greatest(since, date_trunc('month', until, 'UTC'))) / 3600 end::float8 as storage
      from seen
    )
    select s.*, case when k.branch_id is null then 0 else s.storage end as spanned
    from sums s left join kept k on k.branch_id = s.branch_id`;
}

/**
 * What a project has stored in the month, in bytes times hours: its counter has the spans that ended. One statement,
 * because a span that ends between two would be in neither.
 */
export async function selectStoredOfMonth(sql: Sql, projectId: ProjectId, now: Date): Promise<number> {
  const [found] = await sql<{ storage: number }[]>`
    select coalesce(case when p.usage ->> 'period' = ${periodOf(now)} then (p.usage ->> 'storage')::float8 end, 0)
      + coalesce(s.storage, 0)::float8 as storage
    from projects p, (
      select sum(metered_size * extract(epoch from greatest(interval '0', ${now}::timestamptz
        - greatest(metered_until, date_trunc('month', ${now}::timestamptz, 'UTC')))) / 3600) as storage
      from branches where project_id = ${projectId} and deleting_at is null and metered_until is not null) s
    where p.id = ${projectId}`;
  return found?.storage ?? 0;
}
