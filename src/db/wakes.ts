/** The statements of a wake. Somebody waits for each round trip, so each says in one what could be said in several. */
import type { EndpointId, OperationId } from '../ids.ts';
import { first, json, type Sql, type Tx } from './client.ts';
import type { EndpointRow } from './endpoints.ts';
import { type NewOperation, type OperationRow, operationsChannel, unfinished, urgentPayload } from './operations.ts';

/**
 * The ordinary wake in one statement: marks an endpoint that sleeps in a project where nothing is under way, and queues
 * the operation that starts it. False, and nothing done, when anything is otherwise or somebody holds the project.
 */
export async function insertStartOfSleeper(sql: Sql, operation: NewOperation): Promise<boolean> {
  const { projectId, branchId, endpointId } = operation;
  const rows = await sql`
    with project as (
      select id from projects where id = ${projectId} and deleting_at is null for update skip locked),
    endpoint as (
      update endpoints e set pending_state = 'active', updated_at = now() from project
      where e.id = ${endpointId} and e.project_id = project.id and e.branch_id = ${branchId} and e.current_state = 'idle'
        and e.pending_state is null and e.address is null and not e.disabled and e.deleting_at is null
        and not exists (
          select 1 from operations o where o.project_id = ${projectId} and o.status in ${unfinished(sql)})
      returning e.id),
    queued as (
      insert into operations (id, project_id, branch_id, endpoint_id, action, status, job, step, state, exclusive_keys,
        shared_keys, priority, deadline_at)
      select ${operation.id}::uuid, ${projectId}::text, ${branchId}::text, endpoint.id, ${operation.action}::text,
        'running', ${operation.job}::text, ${operation.step}::text, ${json(sql, operation.state)}::jsonb,
        ${operation.exclusiveKeys}::text[], ${operation.sharedKeys}::text[], ${operation.priority}::smallint,
        ${operation.deadlineAt}::timestamptz
      from endpoint returning id)
    select pg_notify(${operationsChannel}, ${urgentPayload}) from queued`;
  return rows.length > 0;
}

/** Somebody waits for what is queued on an endpoint: none of it may stand behind work that nobody waits for. */
export async function hurryOperations(tx: Tx, endpointId: EndpointId, priority: number): Promise<void> {
  await Promise.all([
    tx`
      update operations set priority = ${priority}
      where status in ${unfinished(tx)} and endpoint_id = ${endpointId} and priority < ${priority}`,
    tx`select pg_notify(${operationsChannel}, ${urgentPayload})`,
  ]);
}

/**
 * Raises an endpoint's generation, keeps it in the state of the operation that starts it and goes on to `step`, all in
 * one statement: somebody waits for each round trip. The endpoint is locked before the operation, as commands do.
 * Nothing happens when the lease is lost or the operation cancelled.
 */
export async function raiseFence(
  sql: Sql,
  id: OperationId,
  lease: string,
  next: { readonly step: string; readonly endpointId: EndpointId },
): Promise<OperationRow | undefined> {
  return first(
    await sql<OperationRow[]>`
      with locked as (select id from endpoints where id = ${next.endpointId} for update),
      held as (
        select o.id, locked.id as endpoint_id from operations o cross join locked
        where o.id = ${id} and o.lease = ${lease} and o.status <> 'cancelling' for update of o),
      raised as (
        update endpoints e set generation = e.generation + 1 from held where e.id = held.endpoint_id
        returning e.generation)
      update operations o set step = ${next.step}, run_at = now(), updated_at = clock_timestamp(),
        state = o.state || jsonb_build_object('generation', raised.generation)
      from held, raised where o.id = held.id returning o.*`,
  );
}

export interface WakeRow extends Pick<EndpointRow, 'address' | 'server'> {
  /** The newest operation on the endpoint; null when there was none. */
  readonly operationId: OperationId | null;
  readonly status: OperationRow['status'] | null;
  readonly error: string | null;
  readonly finishedAt: Date | null;
}

/** Route and operation as of one moment: between two looks a start may end, which would look like one that failed. */
export async function selectWake(sql: Sql, id: EndpointId): Promise<WakeRow | undefined> {
  return first(
    await sql<WakeRow[]>`
      select e.address, e.server, o.id as operation_id, o.status, o.error, o.finished_at
      from endpoints e left join lateral (
        select * from operations where endpoint_id = e.id order by sequence desc limit 1) o on true
      where e.id = ${id}`,
  );
}
