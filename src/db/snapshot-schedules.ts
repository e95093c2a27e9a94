/** Rows of `snapshot_schedules`. */
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { first, json, type Sql } from './client.ts';

export interface ScheduleItem {
  readonly frequency: 'hourly' | 'daily' | 'weekly' | 'monthly' | 'yearly';
  /** All three in UTC; 1 is Monday, or the first of the month, and January. */
  readonly hour?: number;
  readonly day?: number;
  readonly month?: number;
  readonly retention_seconds?: number;
}

export interface ScheduleRow {
  readonly branchId: BranchId;
  readonly items: readonly ScheduleItem[];
  readonly nextAt: Date;
  readonly error: string | null;
}

export async function upsertSchedule(
  sql: Sql,
  { branchId, items, nextAt }: Pick<ScheduleRow, 'branchId' | 'items' | 'nextAt'>,
): Promise<void> {
  await sql`
    insert into snapshot_schedules (branch_id, items, next_at) values (${branchId}, ${json(sql, items)}, ${nextAt})
    on conflict (branch_id) do update set
      items = excluded.items, next_at = excluded.next_at, error = null, updated_at = now()`;
}

export async function updateScheduleTurn(
  sql: Sql,
  branchId: BranchId,
  { nextAt, error }: Pick<ScheduleRow, 'nextAt' | 'error'>,
): Promise<void> {
  await sql`
    update snapshot_schedules set next_at = ${nextAt}, error = ${error}, updated_at = now()
    where branch_id = ${branchId}`;
}

export async function selectSchedule(sql: Sql, branchId: BranchId): Promise<ScheduleRow | undefined> {
  return first(await sql<ScheduleRow[]>`select * from snapshot_schedules where branch_id = ${branchId}`);
}

/** Of branches and projects that are there. */
export async function selectDueSchedules(
  sql: Sql,
  now: Date,
): Promise<(Pick<ScheduleRow, 'branchId'> & { readonly projectId: ProjectId })[]> {
  return sql`
    select s.branch_id, b.project_id from snapshot_schedules s
    join branches b on b.id = s.branch_id and b.deleting_at is null
    join projects p on p.id = b.project_id and p.deleting_at is null
    where s.next_at <= ${now} order by s.next_at`;
}

export async function deleteSchedule(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`delete from snapshot_schedules where branch_id = ${branchId}`;
}

/** The schedule of one branch becomes that of another, which loses its own; one that does not exist changes nothing. */
export async function moveSchedule(sql: Sql, from: BranchId, to: BranchId): Promise<void> {
  if ((await selectSchedule(sql, from)) === undefined) return;
  await deleteSchedule(sql, to);
  await sql`update snapshot_schedules set branch_id = ${to} where branch_id = ${from}`;
}
