/** What is on record about the histories of branches (`branches.history`). None of it is a user's change. */
import type { BranchId, ProjectId } from '../lib/ids.ts';
import type { BranchHistory } from '../lib/model.ts';
import { json, one, type Sql } from './client.ts';

/** A branch that has data, or will have soon, with what is needed to keep its history. */
export interface KeptBranch {
  readonly id: BranchId;
  readonly projectId: ProjectId;
  readonly tenantUid: number | null;
  readonly retentionSeconds: number;
  /** Its primary runs. */
  readonly isAwake: boolean;
  readonly lastResetAt: Date | null;
  readonly history: BranchHistory | null;
  /** When it was due, as the database writes it. */
  readonly dueMark: string;
}

export type KeptFilter =
  | { readonly projectId: ProjectId }
  /** Those that nobody has been asked about yet. */
  | { readonly isNew: true }
  /** Those that are awake, and those that sleep and are due by then, or by the clock of the database. */
  | { readonly dueAt: Date };

/** The rest is left to the next turn. */
const dueMax = 1_000;

export async function selectKeptBranches(sql: Sql, filter: KeptFilter): Promise<KeptBranch[]> {
  return sql<KeptBranch[]>`
    select b.id, b.project_id, p.tenant_uid, p.history_retention_seconds as retention_seconds, b.last_reset_at, b.history,
      b.history_due_at::text as due_mark,
      exists (
        select 1 from endpoints e
        where e.branch_id = b.id and e.type = 'read_write' and e.current_state = 'active' and e.deleting_at is null
      ) as is_awake
    from branches b join projects p on p.id = b.project_id
    where b.current_state <> 'init' and b.deleting_at is null and p.deleting_at is null and ${chosenBy(sql, filter)}
    order by b.id`;
}

function chosenBy(sql: Sql, filter: KeptFilter) {
  if ('projectId' in filter) return sql`b.project_id = ${filter.projectId}`;
  if ('isNew' in filter) return sql`b.history is null`;
  return sql`b.id in (
    select e.branch_id from endpoints e
    where e.current_state = 'active' and e.type = 'read_write' and e.deleting_at is null
    union all
    (select d.id from branches d where d.history_due_at <= greatest(${filter.dueAt}, now()) and d.deleting_at is null
     order by d.history_due_at limit ${dueMax}))`;
}

const farOff = new Date('9999-12-31T00:00:00Z');

/** Null is until its next wake. Nothing happens where that, or a nap, has made it due since it was read. */
export async function putHistoryOff(
  sql: Sql,
  { id, dueMark }: Pick<KeptBranch, 'id' | 'dueMark'>,
  until: Date | null,
): Promise<void> {
  await sql`
    update branches set history_due_at = ${until ?? farOff} where id = ${id} and history_due_at::text = ${dueMark}`;
}

/** Nothing happens where a restore has given the branch other data since it was read. */
export async function recordHistory(
  sql: Sql,
  { id, lastResetAt }: Pick<KeptBranch, 'id' | 'lastResetAt'>,
  history: BranchHistory,
): Promise<void> {
  await sql`
    update branches set history = ${json(sql, history)} where id = ${id} and last_reset_at is not distinct from ${lastResetAt}`;
}

/** With the data that it belongs to; null for data that nobody was asked about yet. */
export async function updateHistory(sql: Sql, id: BranchId, history: BranchHistory | null): Promise<void> {
  await sql`update branches set history = ${history && json(sql, history)} where id = ${id}`;
}

export interface HistoryTotals {
  readonly branches: number;
  readonly baseBytes: number;
  readonly logBytes: number;
  readonly gaps: number;
  /** Of the awake branch that is furthest behind. */
  readonly lagSeconds: number;
  /** Awake branches that are further behind than the given seconds. */
  readonly behind: number;
  /** Looks into the past that have a compute, or are about to. */
  readonly looks: number;
}

export async function sumHistories(sql: Sql, behindSeconds: number): Promise<HistoryTotals> {
  return one(
    await sql<HistoryTotals[]>`
      with kept as (
        select b.history, extract(epoch from now() - coalesce((b.history #>> '{until,at}')::timestamptz, b.state_changed_at))
          as lag, p.history_retention_seconds > 0 and exists (
            select 1 from endpoints e where e.branch_id = b.id and e.type = 'read_write'
              and e.current_state = 'active' and e.pending_state is null and e.deleting_at is null
          ) as counts
        from branches b join projects p on p.id = b.project_id
        where b.current_state = 'ready' and b.deleting_at is null and p.deleting_at is null
      )
      select count(*) filter (where history -> 'from' <> 'null')::int as branches,
        coalesce(sum((history ->> 'baseBytes')::float8), 0)::float8 as base_bytes,
        coalesce(sum((history ->> 'logBytes')::float8), 0)::float8 as log_bytes,
        coalesce(sum(jsonb_array_length(history -> 'gaps')), 0)::int as gaps,
        coalesce(max(greatest(lag, 0)) filter (where counts), 0)::float8 as lag_seconds,
        count(*) filter (where counts and lag > ${behindSeconds})::int as behind,
        (select count(*)::int from looks where state <> 'refused') as looks
      from kept`,
  );
}
