/**
 * Rows of `operations`: the public record and the queue are the same row. An operation is free to run when it is due,
 * not leased, and no earlier unfinished operation holds a key that conflicts with its own.
 */
import type { BranchId, EndpointId, OperationId, ProjectId, SnapshotId } from '../lib/ids.ts';
import { first, type JsonValue, json, one, type Sql, type Tx } from './client.ts';

export type OperationStatus =
  | 'scheduling'
  | 'running'
  | 'finished'
  | 'failed'
  | 'error'
  | 'cancelling'
  | 'cancelled'
  | 'skipped';

export type OperationState = { readonly [key: string]: JsonValue };

export interface OperationRow {
  readonly id: OperationId;
  readonly sequence: number;
  readonly projectId: ProjectId;
  readonly branchId: BranchId | null;
  readonly endpointId: EndpointId | null;
  readonly action: string | null;
  readonly status: OperationStatus;
  readonly error: string | null;
  readonly failuresCount: number;
  readonly retryAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly finishedAt: Date | null;
  readonly job: string;
  readonly step: string;
  readonly state: OperationState;
  readonly exclusiveKeys: string[];
  readonly sharedKeys: string[];
  readonly priority: number;
  readonly runAt: Date;
  readonly lease: string | null;
  readonly deadlineAt: Date;
}

export type NewOperation = Pick<
  OperationRow,
  | 'id'
  | 'projectId'
  | 'branchId'
  | 'endpointId'
  | 'action'
  | 'job'
  | 'step'
  | 'state'
  | 'exclusiveKeys'
  | 'sharedKeys'
  | 'priority'
  | 'deadlineAt'
>;

export const operationsChannel = 'catnap_operations';
export const changesChannel = 'catnap_changes';
/** Payload on the channel of operations when a client waits for the new one. */
export const urgentPayload = 'urgent';
/** Payload when there is a new operation that no client waits for. Of other news either kind of work may become due. */
export const ordinaryPayload = 'ordinary';

export const unfinished = (sql: Sql) => sql`('scheduling', 'running', 'failed', 'cancelling')`;

/** `earlier` holds a key that `later` must wait for. */
const conflicts = (sql: Sql, earlier: string, later: string) => sql`(
  ${sql(earlier)}.exclusive_keys && (${sql(later)}.exclusive_keys || ${sql(later)}.shared_keys)
  or ${sql(earlier)}.shared_keys && ${sql(later)}.exclusive_keys)`;

/**
 * Written `running` when nothing that conflicts precedes it, `scheduling` otherwise. The caller holds the project's
 * row, so the order of sequence numbers is the order of commits.
 */
export async function insertOperation(tx: Tx, operation: NewOperation): Promise<OperationRow> {
  // Lists go on where the time of their last one was, so no two of a project may have the same, nor an earlier one.
  const createdAt = tx`greatest(clock_timestamp(), (
    select max(created_at) + interval '1 microsecond' from operations where project_id = ${operation.projectId}))`;
  const row = { ...operation, state: json(tx, operation.state), status: 'scheduling', createdAt: createdAt as never };
  // Sent together, carried out in this order.
  const [inserted, started] = await Promise.all([
    tx<OperationRow[]>`insert into operations ${tx(row)} returning *`,
    tx<OperationRow[]>`
      update operations o set status = 'running' where o.id = ${operation.id} and not exists (
        select 1 from operations e where e.status in ${unfinished(tx)} and e.sequence < o.sequence
          and e.project_id = o.project_id and ${conflicts(tx, 'e', 'o')})
      returning *`,
    tx`select pg_notify(${operationsChannel}, ${operation.priority > 0 ? urgentPayload : ordinaryPayload})`,
  ]);
  return first(started) ?? one(inserted);
}

/** The first step of every start. Until it commits a new generation it only reads. */
const fenceStep = 'fence';

/**
 * Takes the next operation that is free to run; `skip locked` keeps workers out of each other's way. With `urgentOnly`,
 * only one that a client waits for. The claim of a start does not wait for the disk: the commit of the fence does, and
 * a crash that loses the claim before that leaves nothing done under it.
 */
export async function claimOperation(
  sql: Sql,
  lease: string,
  leaseMs: number,
  urgentOnly = false,
): Promise<OperationRow | undefined> {
  return first(
    await sql<OperationRow[]>`
      with claimed as (
        update operations set lease = ${lease}, lease_until = now() + ${leaseMs} * interval '1 ms', retry_at = null,
          status = case when status = 'cancelling' then status else 'running' end, updated_at = clock_timestamp()
        where id = (
          select o.id from operations o
          where o.status in ${unfinished(sql)} and o.run_at <= now() ${urgentOnly ? sql`and o.priority > 0` : sql``}
            and (o.lease_until is null or o.lease_until < now())
            and not exists (
              select 1 from operations e where e.status in ${unfinished(sql)} and e.sequence < o.sequence
                and e.project_id = o.project_id and ${conflicts(sql, 'e', 'o')})
          order by o.priority desc, o.sequence limit 1 for update of o skip locked)
        returning *)
      select * from claimed
      where case when step = ${fenceStep} then set_config('synchronous_commit', 'off', true) <> '' else true end`,
  );
}

/**
 * Milliseconds until something becomes due or a lease runs out; null when nothing does. What waits for another
 * operation is not counted: the end of that one is announced.
 */
export async function selectNextDueMs(sql: Sql): Promise<number | null> {
  return one(
    await sql<{ ms: number | null }[]>`
      select (extract(epoch from min(due_at) - now()) * 1000)::int as ms
      from operations, greatest(run_at, lease_until) as due_at
      where status in ${unfinished(sql)} and due_at > now()`,
  ).ms;
}

/** Holds the row if the lease is still ours; a worker that lost its lease gets nothing and must write nothing. */
export async function lockLeased(tx: Tx, id: OperationId, lease: string): Promise<OperationRow | undefined> {
  return first(await tx<OperationRow[]>`select * from operations where id = ${id} and lease = ${lease} for update`);
}

/** With `waitMs` 0 the worker keeps its lease and goes on at once. */
export async function updateStep(
  tx: Tx,
  id: OperationId,
  next: { readonly step: string; readonly state: OperationState; readonly waitMs: number },
): Promise<void> {
  const release = next.waitMs > 0 ? tx`, lease = null, lease_until = null` : tx``;
  await tx`
    update operations set step = ${next.step}, state = ${json(tx, next.state)},
      run_at = now() + ${next.waitMs} * interval '1 ms', updated_at = clock_timestamp() ${release}
    where id = ${id}`;
}

export async function failStep(
  tx: Tx,
  id: OperationId,
  failure: { readonly error: string; readonly retryMs: number; readonly step: string; readonly deadlineAt: Date },
): Promise<void> {
  const { error, retryMs, step, deadlineAt } = failure;
  await tx`
    update operations set status = 'failed', step = ${step}, error = ${error}, failures_count = failures_count + 1, lease = null,
      lease_until = null, run_at = now() + ${retryMs} * interval '1 ms', retry_at = now() + ${retryMs} * interval '1 ms',
      deadline_at = ${deadlineAt}, updated_at = clock_timestamp()
    where id = ${id}`;
}

/**
 * The caller holds the project. Workers are called only if something in the project waits: what is queued later calls
 * them itself, and those that look for nothing would compete with whoever waits for this end.
 */
export async function finishOperation(
  tx: Tx,
  operation: Pick<OperationRow, 'id' | 'projectId' | 'endpointId'>,
  status: 'finished' | 'error' | 'cancelled' | 'skipped',
  error: string | null = null,
): Promise<void> {
  await Promise.all([
    tx`
      update operations set status = ${status}, error = coalesce(${error}, error), lease = null, lease_until = null,
        retry_at = null, finished_at = clock_timestamp(), updated_at = clock_timestamp(), state = '{}'
      where id = ${operation.id}`,
    tx`
      select pg_notify(${changesChannel}, ${operation.id}),
        pg_notify(${changesChannel}, ${operation.endpointId ?? operation.id}),
        case when exists (
          select 1 from operations w where w.project_id = ${operation.projectId} and w.id <> ${operation.id}
            and w.status in ${unfinished(tx)}) then pg_notify(${operationsChannel}, '') end`,
  ]);
}

export type CancelledOperations = {
  readonly branchId?: BranchId;
  readonly endpointId?: EndpointId;
  readonly snapshotId?: SnapshotId;
} & ({ readonly except: readonly string[] } | { readonly only: readonly string[] });

/**
 * Makes way for a deletion: what has not begun is cancelled now; what has is `cancelling`, and its worker, or the next
 * one, ends it after the running step. Operations on other objects that merely hold one of these keys go on, and so do
 * jobs that are not chosen.
 */
export async function cancelOperations(tx: Tx, projectId: ProjectId, of: CancelledOperations): Promise<void> {
  const chosen = 'only' in of ? tx`job = any(${[...of.only]})` : tx`job <> all(${[...of.except]})`;
  const begun = tx`(lease_until > now() or state <> '{}')`;
  await tx`
    update operations set
      status = case when ${begun} then 'cancelling' else 'cancelled' end,
      finished_at = case when ${begun} then null else clock_timestamp() end,
      -- A worker that comes back after its lease has run out must not go on with what is over.
      lease = case when ${begun} then lease end, lease_until = case when ${begun} then lease_until end,
      run_at = now(), updated_at = clock_timestamp()
    where project_id = ${projectId} and status in ${unfinished(tx)} and ${chosen}
      and (${of.branchId ?? null}::text is null or branch_id = ${of.branchId ?? null})
      and (${of.endpointId ?? null}::text is null or endpoint_id = ${of.endpointId ?? null})
      and (${of.snapshotId ?? null}::text is null or state ->> 'snapshot' = ${of.snapshotId ?? null})`;
}

/** How long a change that has not failed yet may go on once a suspend waits for it. */
const changeMs = 120_000;

/** For a suspend that waits behind a change: the next failure of the change is its last. A move ends in a suspend. */
export async function hurryFailingChange(tx: Tx, endpointId: EndpointId, now: Date): Promise<void> {
  const soon = new Date(now.getTime() + changeMs);
  await tx`
    update operations set deadline_at = least(deadline_at, case when failures_count > 0 then ${now} else ${soon} end),
      run_at = now()
    where endpoint_id = ${endpointId} and job = 'apply_config' and status in ${unfinished(tx)}
      and not state ? 'moved_from'`;
}

/** For an operation that does not need what it shares any more, whatever it does from here on. */
export async function releaseShared(tx: Tx, id: OperationId, kept: readonly string[]): Promise<void> {
  await Promise.all([
    tx`update operations set shared_keys = ${[...kept]} where id = ${id}`,
    tx`select pg_notify(${operationsChannel}, '')`,
  ]);
}

/** What was queued to follow an operation that has failed, and has not begun. */
export async function cancelFollowers(tx: Tx, operationId: OperationId): Promise<void> {
  await tx`
    update operations set status = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp()
    where status in ${unfinished(tx)} and state ->> 'follows' = ${operationId} and lease is null`;
}

export async function countUnfinished(sql: Sql, projectId: ProjectId): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from operations where project_id = ${projectId} and status in ${unfinished(sql)}`,
  ).count;
}

/** The last unfinished operation on an endpoint, if any. */
export async function selectUnfinishedForEndpoint(sql: Sql, endpointId: EndpointId): Promise<OperationRow | undefined> {
  return first(
    await sql<OperationRow[]>`
      select * from operations where status in ${unfinished(sql)} and endpoint_id = ${endpointId}
      order by sequence desc limit 1`,
  );
}

/** Of those that are still on record, the one of an endpoint that was queued last. */
export async function selectLastOf(sql: Sql, endpointId: EndpointId, job: string): Promise<OperationRow | undefined> {
  return first(
    await sql<OperationRow[]>`
      select * from operations where endpoint_id = ${endpointId} and job = ${job} order by sequence desc limit 1`,
  );
}

/** Whether a move of the operation's endpoint to another branch waits behind it. */
export async function isMoveQueued(
  sql: Sql,
  { endpointId, sequence }: Pick<OperationRow, 'endpointId' | 'sequence'>,
): Promise<boolean> {
  const [queued] = await sql`
    select 1 from operations where endpoint_id = ${endpointId} and status in ${unfinished(sql)}
      and sequence > ${sequence} and state ? 'moved_from' limit 1`;
  return queued !== undefined;
}

/** Whether an unfinished operation, of whatever endpoint, holds one of these keys. */
export async function areKeysHeld(sql: Sql, projectId: ProjectId, keys: readonly string[]): Promise<boolean> {
  const [held] = await sql`
    select 1 from operations where project_id = ${projectId} and status in ${unfinished(sql)}
      and (exclusive_keys || shared_keys) && ${[...keys]}::text[] limit 1`;
  return held !== undefined;
}

export async function selectOperation(
  sql: Sql,
  projectId: ProjectId,
  id: OperationId,
): Promise<OperationRow | undefined> {
  return first(
    await sql<OperationRow[]>`
      select * from operations where project_id = ${projectId} and id = ${id} and action is not null`,
  );
}

/** Of any operation, listed or not. */
export async function selectOperationStatus(
  sql: Sql,
  id: OperationId,
): Promise<Pick<OperationRow, 'status' | 'error'> | undefined> {
  return first(await sql<OperationRow[]>`select status, error from operations where id = ${id}`);
}

/** Of one job, of all projects. */
export async function countUnfinishedOf(sql: Sql, job: string): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from operations where job = ${job} and status in ${unfinished(sql)}`,
  ).count;
}

/** Newest first; `before` is the creation time of the last one on the previous page, with microseconds. */
export async function selectOperations(
  sql: Sql,
  projectId: ProjectId,
  page: { readonly before: string | null; readonly limit: number },
): Promise<(OperationRow & { readonly cursor: string })[]> {
  return sql<(OperationRow & { cursor: string })[]>`
    select *, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as cursor from operations
    where project_id = ${projectId} and action is not null
      and (${page.before}::text is null or created_at < ${page.before}::text::timestamptz)
    order by created_at desc, sequence desc limit ${page.limit}`;
}

/** Operations are kept for half a year. */
export async function deleteOldOperations(sql: Sql, olderThanDays: number): Promise<number> {
  const rows = await sql`
    delete from operations where finished_at < now() - ${olderThanDays} * interval '1 day' returning 1`;
  return rows.length;
}
