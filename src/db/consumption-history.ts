/** What was consumed, by hour, day or month: from the hours on record and from spans of one size (`storage.ts`). */
import type { BranchId, ProjectId } from '../lib/ids.ts';
import type { Sql } from './client.ts';

export interface ConsumptionRow {
  readonly projectId: ProjectId;
  /** Null in a sum over all branches of a project. */
  readonly branchId: BranchId | null;
  readonly start: Date;
  readonly activeSeconds: number;
  readonly computeUnitSeconds: number;
  readonly cpuSeconds: number;
  readonly writtenBytes: number;
  readonly transferBytes: number;
  readonly rootByteHours: number;
  readonly childByteHours: number;
  readonly logicalBytes: number;
}

export interface HistoryQuery {
  readonly projectIds: readonly string[];
  readonly branchIds: readonly string[] | null;
  /** Both are ends of units. */
  readonly from: Date;
  readonly to: Date;
  readonly unit: 'hour' | 'day' | 'month';
  readonly by: 'project' | 'branch';
  readonly now: Date;
}

/** Oldest first. */
export async function selectConsumption(sql: Sql, query: HistoryQuery): Promise<ConsumptionRow[]> {
  const branch = query.by === 'branch' ? sql`branch_id` : sql`null::text`;
  return sql<ConsumptionRow[]>`
    with consumed as (
      select project_id, branch_id, is_root, date_trunc(${query.unit}, hour, 'UTC') as start, active_seconds,
        compute_unit_seconds, cpu_seconds, written_bytes, transfer_bytes, storage_byte_seconds, logical_bytes
      from consumption_hours
      where project_id = any(${[...query.projectIds]}) and hour >= ${query.from} and hour < ${query.to}
      union all ${stored(sql, query)}
    )
    select project_id, ${branch} as branch_id, start,
      sum(active_seconds) as active_seconds, sum(compute_unit_seconds) as compute_unit_seconds,
      sum(cpu_seconds) as cpu_seconds, sum(written_bytes) as written_bytes,
      sum(transfer_bytes) as transfer_bytes,
      coalesce(sum(storage_byte_seconds) filter (where is_root), 0) / 3600 as root_byte_hours,
      coalesce(sum(storage_byte_seconds) filter (where not is_root), 0) / 3600 as child_byte_hours,
      max(logical_bytes)::float8 as logical_bytes
    from consumed
    where ${query.branchIds === null} or branch_id = any(${[...(query.branchIds ?? [])]})
    group by 1, 2, 3 order by 1, 2, 3`;
}

/** Spans that ended and those that go on, cut at the ends of units: a row of nothing else for each unit. */
function stored(sql: Sql, { projectIds, from, to, unit, now }: HistoryQuery) {
  const ofProjects = sql`project_id = any(${[...projectIds]})`;
  const step = sql`${`1 ${unit}`}::interval`;
  return sql`
    select project_id, branch_id, is_root, begin at time zone 'UTC', 0, 0, 0, 0, 0,
      bytes * extract(epoch from least(until, (begin + ${step}) at time zone 'UTC')
        - greatest(since, begin at time zone 'UTC'))::float8, bytes
    from (
      select project_id, branch_id, is_root, since, until, bytes from stored_spans
      where ${ofProjects} and until > ${from} and since < ${to}
      union all
      select project_id, id, parent_id is null, metered_until, greatest(metered_until, ${now}), metered_size
      from branches
      where ${ofProjects} and deleting_at is null and metered_until < ${to}
    ) spans, generate_series(
      date_trunc(${unit}, greatest(since, ${from}) at time zone 'UTC'),
      least(greatest(since, until - interval '1 microsecond'), ${to}::timestamptz - interval '1 microsecond')
        at time zone 'UTC', ${step}) as begin`;
}
