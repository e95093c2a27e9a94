/** The statements of a wake. A client waits for every round trip, so each does the work of several. */
import {
  asEndpointId,
  asProjectId,
  type BranchId,
  type EndpointId,
  type OperationId,
  type ProjectId,
} from '../lib/ids.ts';
import type { ComputeAddress } from '../lib/model.ts';
import { first, json, type Sql, type Tx } from './client.ts';
import type { EndpointRow } from './endpoints.ts';
import {
  changesChannel,
  type NewOperation,
  type OperationRow,
  operationsChannel,
  unfinished,
  urgentPayload,
} from './operations.ts';

/**
 * The ordinary wake in one statement: marks an endpoint that sleeps in a project where nothing is under way, and queues
 * the operation that starts it. Does nothing and returns false if anything else is found, if the project is locked, or
 * if it has quotas, which this does not check.
 */
export async function insertStartOfSleeper(sql: Sql, operation: NewOperation): Promise<boolean> {
  const { projectId, branchId, endpointId } = operation;
  const rows = await sql`
    with project as (
      select id from projects where id = ${projectId} and deleting_at is null and settings -> 'quota' is null
      for update skip locked),
    endpoint as (
      update endpoints e set pending_state = 'active', updated_at = now() from project
      where e.id = ${endpointId} and e.project_id = project.id and e.branch_id = ${branchId} and e.current_state = 'idle'
        and e.pending_state is null and e.address is null and not e.disabled and e.deleting_at is null
        and e.disk_guard is distinct from 'held'
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
    select pg_notify(${operationsChannel}, ${`${urgentPayload} ${projectId} ${endpointId}`}) from queued`;
  return rows.length > 0;
}

/** What a wake announces to workers besides its urgency, so that they can query its rows at once. */
export interface WakeCall {
  readonly projectId: ProjectId;
  readonly endpointId: EndpointId;
}

export const isUrgent = (payload: string) => payload.split(' ', 1)[0] === urgentPayload;

export function parseWakeCall(payload: string): WakeCall | null {
  const [, projectId, endpointId] = payload.split(' ');
  if (projectId === undefined || endpointId === undefined) return null;
  return { projectId: asProjectId(projectId), endpointId: asEndpointId(endpointId) };
}

/** A client waits for what is queued on an endpoint: none of it may queue behind work that no client waits for. */
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
 * one statement: a client waits for every round trip. The endpoint is locked before the operation, as commands do.
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

/** A server that has come up, as its endpoint's row records it. */
export interface StartedServer
  extends Pick<EndpointRow, 'address' | 'server' | 'currentCu' | 'startedAt' | 'generation'> {
  readonly endpointId: EndpointId;
  /** Of a primary: from now on owners can change its roles and databases by SQL. */
  readonly branchId: BranchId | null;
  /** Announced to proxies. */
  readonly route: RouteNews['route'];
}

/**
 * Opens the route of a server and ends the operation that started it, all in one statement, if nothing has been
 * requested of the endpoint since: a suspend that follows shows in the pending state. The newest versions of the rows
 * are checked, under the project's lock as everywhere. Proxies are sent the server's address and do not ask for it.
 * Workers are called only if something in the project waits: the client logs in at this moment, and they would compete
 * with it.
 */
export async function openStartedRoute(
  sql: Sql,
  operation: Pick<OperationRow, 'id' | 'projectId'>,
  lease: string,
  started: StartedServer,
): Promise<boolean> {
  const { endpointId, branchId, address, server, currentCu, startedAt, generation, route } = started;
  const news: RouteNews = { endpointId, route };
  const rows = await sql`
    with project as (select id from projects where id = ${operation.projectId} for update skip locked),
    held as (
      select o.id from operations o join project on o.project_id = project.id
      where o.id = ${operation.id} and o.lease = ${lease} and o.status <> 'cancelling' for update of o),
    opened as (
      update endpoints e set current_state = 'active', pending_state = null, updated_at = now(),
        address = ${address && json(sql, address)}::jsonb, server = ${server && json(sql, server)}::jsonb,
        current_cu = ${currentCu}, started_at = ${startedAt}
      from held where e.id = ${endpointId} and e.pending_state = 'active' and e.generation = ${generation}
        and e.deleting_at is null
      returning e.id),
    branch as (
      update branches b set catalog_kept = false, history_due_at = now() from opened where b.id = ${branchId}),
    finished as (
      update operations o set status = 'finished', lease = null, lease_until = null, retry_at = null, state = '{}',
        finished_at = clock_timestamp(), updated_at = clock_timestamp()
      from opened where o.id = ${operation.id} returning o.id)
    select pg_notify(${routesChannel}, ${JSON.stringify(news)}), pg_notify(${changesChannel}, ${operation.id}),
      pg_notify(${changesChannel}, ${endpointId}),
      case when exists (
        select 1 from operations w where w.project_id = ${operation.projectId} and w.id <> ${operation.id}
          and w.status in ${unfinished(sql)}) then pg_notify(${operationsChannel}, '') end
    from finished`;
  return rows.length > 0;
}

/** For a server that was started again in the same generation, at another address. Proxies leave the old one. */
export async function moveRoute(tx: Tx, endpointId: EndpointId, address: ComputeAddress): Promise<void> {
  await tx`update endpoints set address = ${json(tx, address)}::jsonb where id = ${endpointId} and address is not null`;
  await tx`select pg_notify(${changesChannel}, ${endpointId})`;
}

/**
 * Marks the first branch of a project as ready and ends the operation that made its data, all in one statement: the
 * first client of a new project waits for it. Nothing happens, and the result is false, if the lease is lost, the
 * operation cancelled, the branch deleted, or the project locked.
 */
export async function readyFirstBranch(
  sql: Sql,
  operation: Pick<OperationRow, 'id' | 'projectId'>,
  lease: string,
  { branchId, receipt }: { readonly branchId: BranchId; readonly receipt: object },
): Promise<boolean> {
  const rows = await sql`
    with project as (select id from projects where id = ${operation.projectId} for update skip locked),
    held as (
      select o.id from operations o join project on o.project_id = project.id
      where o.id = ${operation.id} and o.lease = ${lease} and o.status <> 'cancelling' for update of o),
    ready as (
      update branches b set current_state = 'ready', pending_state = null, state_changed_at = clock_timestamp(),
        updated_at = now(), receipt = ${json(sql, receipt)}::jsonb
      from held where b.id = ${branchId} and b.deleting_at is null returning b.id),
    finished as (
      update operations o set status = 'finished', lease = null, lease_until = null, retry_at = null, state = '{}',
        finished_at = clock_timestamp(), updated_at = clock_timestamp()
      from ready where o.id = ${operation.id} returning o.id)
    select pg_notify(${operationsChannel}, ''), pg_notify(${changesChannel}, ${operation.id}) from finished`;
  return rows.length > 0;
}

/** Announces a route to proxies at the moment a usual wake ends. The rows say the same. */
export const routesChannel = 'catnap_routes';

export interface RouteNews {
  readonly endpointId: EndpointId;
  readonly route: ComputeAddress & { readonly sessions?: number; readonly generation?: number };
}

export const parseRouteNews = (payload: string) => JSON.parse(payload) as RouteNews;

export interface WakeRow extends Pick<EndpointRow, 'address' | 'server' | 'generation'> {
  /** The newest operation on the endpoint; null when there was none. */
  readonly operationId: OperationId | null;
  readonly status: OperationRow['status'] | null;
  readonly error: string | null;
  readonly finishedAt: Date | null;
}

/** Route and operation as of one moment: between two reads a start may end, which would look like one that failed. */
export async function selectWake(sql: Sql, id: EndpointId): Promise<WakeRow | undefined> {
  return first(
    await sql<WakeRow[]>`
      select e.address, e.server, e.generation, o.id as operation_id, o.status, o.error, o.finished_at
      from endpoints e left join lateral (
        select * from operations where endpoint_id = e.id order by sequence desc limit 1) o on true
      where e.id = ${id}`,
  );
}
