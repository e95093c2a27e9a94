/** Rows of `backup_histories` and `backup_state`: what is off the machine, and how the uploader fares. */
import type { LogPosition } from '../lib/moments.ts';
import type { Sql } from './client.ts';

export interface BackupHistoryRow {
  readonly historyId: string;
  readonly projectId: string;
  readonly branchId: string;
  /** Null where the branch or its project is gone, and for the system database. */
  readonly projectName: string | null;
  readonly branchName: string | null;
  /** Of a snapshot, whose branch is the one that it was taken of; null for the past of a branch. */
  readonly snapshotId: string | null;
  /** Null where the snapshot is gone. */
  readonly snapshotName: string | null;
  readonly localAt: Date | null;
  readonly localLsn: string | null;
  readonly storedFrom: Date | null;
  readonly storedAt: Date | null;
  readonly storedLsn: string | null;
  readonly baseCount: number;
  readonly storedBytes: number;
  readonly waitingBytes: number;
  readonly gapCount: number;
  readonly problem: string | null;
  readonly goneSince: Date | null;
  /** Since when it has had something that the store lacks; null while the store has everything. */
  readonly behindSince: Date | null;
  /** Its branch was deleted, alone or with the project, and can perhaps be recovered. */
  readonly isDeleted: boolean;
}

export interface BackupStateRow {
  readonly url: string;
  readonly reportedAt: Date;
  readonly succeededAt: Date | null;
  readonly problem: string | null;
  readonly problemSince: Date | null;
  readonly verifiedAt: Date | null;
  readonly verifiedOk: boolean | null;
  /** What the check found, as sentences. */
  readonly verification: string | null;
}

/** What is known of a history without the store. */
export interface LocalReport {
  readonly historyId: string;
  readonly projectId: string;
  readonly branchId: string;
  readonly localUntil: LogPosition | null;
}

export interface BackupReport extends LocalReport {
  readonly storedFrom: LogPosition | null;
  readonly storedUntil: LogPosition | null;
  readonly baseCount: number;
  readonly storedBytes: number;
  readonly waitingBytes: number;
  readonly gapCount: number;
  readonly problem: string | null;
}

export async function recordBackupState(sql: Sql, url: string, problem: string | null): Promise<void> {
  await sql`
    insert into backup_state (url, reported_at, succeeded_at, problem, problem_since)
    values (${url}, now(), case when ${problem}::text is null then now() end, ${problem},
      case when ${problem}::text is not null then now() end)
    on conflict (is_only) do update set url = excluded.url, reported_at = now(), problem = excluded.problem,
      succeeded_at = coalesce(excluded.succeeded_at, backup_state.succeeded_at),
      problem_since = case when excluded.problem is not null then coalesce(backup_state.problem_since, now()) end`;
}

/** The histories that this machine has; what else was known stays as it is. */
export async function recordBackupHistories(sql: Sql, reports: readonly BackupReport[]): Promise<void> {
  if (reports.length === 0) return;
  await sql`
    insert into backup_histories as h (history_id, project_id, branch_id, local_at, local_lsn, stored_from, stored_at,
      stored_lsn, base_count, stored_bytes, waiting_bytes, gap_count, problem, reported_at, behind_since)
    select r."historyId", r."projectId", r."branchId", (r."localUntil"->>'at')::timestamptz,
      (r."localUntil"->>'lsn')::pg_lsn, (r."storedFrom"->>'at')::timestamptz, (r."storedUntil"->>'at')::timestamptz,
      (r."storedUntil"->>'lsn')::pg_lsn, r."baseCount", r."storedBytes", r."waitingBytes", r."gapCount", r.problem, now(),
      case when r."localUntil"->>'lsn' is distinct from r."storedUntil"->>'lsn' then now() end
    from jsonb_to_recordset(${JSON.stringify(reports)}::text::jsonb) as r(
      "historyId" text, "projectId" text, "branchId" text, "localUntil" jsonb, "storedFrom" jsonb, "storedUntil" jsonb,
      "baseCount" int, "storedBytes" bigint, "waitingBytes" bigint, "gapCount" int, problem text)
    on conflict (history_id) do update set branch_id = excluded.branch_id, local_at = excluded.local_at,
      local_lsn = excluded.local_lsn, stored_from = excluded.stored_from, stored_at = excluded.stored_at,
      stored_lsn = excluded.stored_lsn, base_count = excluded.base_count, stored_bytes = excluded.stored_bytes,
      waiting_bytes = excluded.waiting_bytes, gap_count = excluded.gap_count, problem = excluded.problem,
      reported_at = now(), gone_since = null,
      behind_since = case when excluded.behind_since is not null then coalesce(h.behind_since, now()) end`;
}

/** The same while the store cannot be asked; what it was last known to have stays. */
export async function recordLocalHistories(sql: Sql, reports: readonly LocalReport[]): Promise<void> {
  if (reports.length === 0) return;
  await sql`
    insert into backup_histories as h (history_id, project_id, branch_id, local_at, local_lsn, base_count, stored_bytes,
      waiting_bytes, gap_count, reported_at, behind_since)
    select r."historyId", r."projectId", r."branchId", (r."localUntil"->>'at')::timestamptz,
      (r."localUntil"->>'lsn')::pg_lsn, 0, 0, 0, 0, now(), case when r."localUntil" is not null then now() end
    from jsonb_to_recordset(${JSON.stringify(reports)}::text::jsonb) as r(
      "historyId" text, "projectId" text, "branchId" text, "localUntil" jsonb)
    on conflict (history_id) do update set branch_id = excluded.branch_id, local_at = excluded.local_at,
      local_lsn = excluded.local_lsn, reported_at = now(), gone_since = null,
      behind_since = case when excluded.local_lsn is distinct from h.stored_lsn then coalesce(h.behind_since, now()) end`;
}

export interface GoneHistory {
  readonly projectId: string;
  readonly historyId: string;
}

/** Notes since when this machine lacks histories; returns those that it has lacked for that long. */
export async function recordGoneHistories(
  sql: Sql,
  gone: readonly GoneHistory[],
  { now, keepSeconds }: { readonly now: Date; readonly keepSeconds: number },
): Promise<GoneHistory[]> {
  if (gone.length === 0) return [];
  const rows = await sql<(GoneHistory & { readonly isOver: boolean })[]>`
    insert into backup_histories (history_id, project_id, branch_id, base_count, stored_bytes, waiting_bytes, gap_count,
      reported_at, gone_since)
    select r."historyId", r."projectId", '', 0, 0, 0, 0, now(), ${now}
    from jsonb_to_recordset(${JSON.stringify(gone)}::text::jsonb) as r("historyId" text, "projectId" text)
    on conflict (history_id) do update set reported_at = now(), waiting_bytes = 0, problem = null,
      gone_since = coalesce(backup_histories.gone_since, ${now})
    returning project_id, history_id, gone_since < ${now}::timestamptz - ${keepSeconds}::int * interval '1 second' as is_over`;
  return rows.filter((row) => row.isOver).map(({ projectId, historyId }) => ({ projectId, historyId }));
}

/** What is neither on this machine nor in the store any more. */
export async function deleteBackupHistories(sql: Sql, historyIds: readonly string[]): Promise<void> {
  await sql`delete from backup_histories where history_id = any(${[...historyIds]})`;
}

/** The same, when all are known that are on the machine or in the store. */
export async function deleteOtherBackupHistories(sql: Sql, historyIds: readonly string[]): Promise<void> {
  await sql`
    delete from backup_histories h
    where not exists (select from unnest(${[...historyIds]}::text[]) as known (id) where known.id = h.history_id)`;
}

/** `text` is what a check that restored something has found, as sentences. */
export async function recordVerification(sql: Sql, url: string, isOk: boolean, text: string): Promise<void> {
  await sql`
    insert into backup_state (url, reported_at, verified_at, verified_ok, verification)
    values (${url}, now(), now(), ${isOk}, ${text})
    on conflict (is_only) do update set verified_at = now(), verified_ok = ${isOk}, verification = ${text}`;
}

export async function selectBackupState(sql: Sql): Promise<BackupStateRow | undefined> {
  const [row] = await sql<BackupStateRow[]>`
    select url, reported_at, succeeded_at, problem, problem_since, verified_at, verified_ok, verification
    from backup_state`;
  return row;
}

export async function selectBackupHistories(sql: Sql): Promise<BackupHistoryRow[]> {
  return sql<BackupHistoryRow[]>`
    select h.history_id, h.project_id, coalesce(s.source_branch_id, h.branch_id) as branch_id, p.name as project_name,
      b.name as branch_name, case when h.branch_id like 'snap-%' then h.branch_id end as snapshot_id,
      s.name as snapshot_name, h.local_at,
      h.local_lsn, h.stored_from, h.stored_at, h.stored_lsn, h.base_count, h.stored_bytes, h.waiting_bytes, h.gap_count,
      h.problem, h.gone_since, h.behind_since,
      s.id is null and coalesce(b.deleting_at, p.deleting_at) is not null as is_deleted
    from backup_histories h
    left join projects p on p.id = h.project_id
    left join snapshots s on s.id = h.branch_id and s.project_id = h.project_id
    left join branches b on b.id = coalesce(s.source_branch_id, h.branch_id) and b.project_id = h.project_id
    order by h.project_id, b.name, snapshot_id nulls first, h.history_id`;
}

export interface BackupFactRow {
  readonly id: string;
  readonly name: string;
  readonly pgVersion: number;
  readonly retentionSeconds: number;
  readonly branches: readonly { readonly id: string; readonly name: string; readonly parentId: string | null }[];
  readonly snapshots: readonly {
    readonly id: string;
    readonly name: string;
    readonly sourceBranchId: string;
    readonly takenAt: string | null;
  }[];
}

/** Every project with its branches and snapshots, for the manifest of the store. */
export async function selectBackupFacts(sql: Sql): Promise<BackupFactRow[]> {
  return sql<BackupFactRow[]>`
    select p.id, p.name, p.pg_version, p.history_retention_seconds as retention_seconds,
      coalesce((select jsonb_agg(jsonb_build_object('id', b.id, 'name', b.name, 'parentId', b.parent_id) order by b.id)
        from branches b where b.project_id = p.id), '[]') as branches,
      coalesce((select jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'sourceBranchId', s.source_branch_id,
          'takenAt', s.taken_at) order by s.id)
        from snapshots s where s.project_id = p.id and s.current_state = 'ready'), '[]') as snapshots
    from projects p order by p.id`;
}
