/**
 * Data that `catnap restore` brings into a running installation. An operation waits for each piece; the process that
 * brings it holds a lock for as long as it lives, so that its death is noticed, however it ends.
 */
import type { OperationId, OrganizationId, ProjectId } from '../lib/ids.ts';
import { first, json, one, type Sql, type Tx } from './client.ts';
import { operationsChannel, unfinished } from './operations.ts';

/** Any fixed number: the first half of the name of a project's lock. */
const lockClass = 7_070_002;

/** Where data comes from: the URL of a store, the installation that wrote it, and a time or null for the newest. */
export type DeliveryOrigin = {
  readonly from: string;
  readonly installationId: string;
  readonly at: string | null;
};

export interface DeliveryRow {
  readonly operationId: OperationId;
  readonly projectId: ProjectId;
  readonly dataId: string;
  readonly sourceId: string;
  readonly origin: DeliveryOrigin;
  readonly receipt: object | null;
  readonly failure: string | null;
}

export async function insertDelivery(
  tx: Tx,
  row: Pick<DeliveryRow, 'operationId' | 'projectId' | 'dataId' | 'sourceId' | 'origin'>,
): Promise<void> {
  await tx`insert into deliveries ${tx({ ...row, origin: json(tx, row.origin) })}`;
}

export async function selectDelivery(sql: Sql, operationId: OperationId): Promise<DeliveryRow | undefined> {
  return first(await sql<DeliveryRow[]>`select * from deliveries where operation_id = ${operationId}`);
}

/** Of a project, the last of each piece of data that has not arrived. */
export async function selectMissingDeliveries(
  sql: Sql,
  projectId: ProjectId,
): Promise<(DeliveryRow & { readonly isWaiting: boolean })[]> {
  return sql`
    select * from (
      select distinct on (d.data_id) d.*, o.status in ${unfinished(sql)} as is_waiting
      from deliveries d join operations o on o.id = d.operation_id
      where d.project_id = ${projectId} order by d.data_id, o.sequence desc) last
    where receipt is null and (exists (select from branches b where b.id = data_id and b.deleting_at is null)
      or exists (select from snapshots s where s.id = data_id and s.deleting_at is null))`;
}

export interface CutOffQuestion {
  /** Branches and snapshots of the project, as the backup names them. */
  readonly sourceIds: readonly string[];
  readonly origin: DeliveryOrigin;
  /** Null for any. */
  readonly organizationId: OrganizationId | null;
}

/**
 * Projects under new ids of which something was neither brought nor given up, newest first: the process that brought
 * them was killed, or still lives.
 */
export async function selectCutOffCopies(sql: Sql, question: CutOffQuestion): Promise<ProjectId[]> {
  const { sourceIds, origin, organizationId } = question;
  const rows = await sql<{ projectId: ProjectId }[]>`
    select last.project_id from (
      select distinct on (d.data_id) d.* from deliveries d join operations o on o.id = d.operation_id
      where d.source_id = any(${sourceIds}) and d.data_id <> d.source_id
      order by d.data_id, o.sequence desc) last
    join projects p on p.id = last.project_id
    where last.receipt is null and last.failure is null and p.deleting_at is null
      and last.origin = ${json(sql, origin)} and coalesce(p.organization_id = ${organizationId}, true)
      and (exists (select from branches b where b.id = last.data_id and b.deleting_at is null)
        or exists (select from snapshots s where s.id = last.data_id and s.deleting_at is null))
    group by last.project_id, p.created_at order by p.created_at desc`;
  return rows.map(({ projectId }) => projectId);
}

/** Held by the session until it ends; false if another process has it. */
export async function takeDeliveryLock(sql: Sql, projectId: ProjectId): Promise<boolean> {
  const rows = await sql<{ taken: boolean }[]>`
    select pg_try_advisory_lock(${lockClass}, hashtext(${projectId})) as taken`;
  return one(rows).taken;
}

export async function isDelivering(sql: Sql, projectId: ProjectId): Promise<boolean> {
  const rows = await sql<{ found: boolean }[]>`
    select exists (select from pg_locks where locktype = 'advisory' and granted and classid = ${lockClass}::oid
      and objid = hashtext(${projectId})::oid
      and database = (select oid from pg_database where datname = current_database())) as found`;
  return one(rows).found;
}

/**
 * Whether an operation still waits for its data. It cannot be cancelled, and so its data not be removed, before the
 * transaction ends.
 */
export async function lockWaiting(tx: Tx, operationId: OperationId): Promise<boolean> {
  await tx`set local idle_in_transaction_session_timeout = '5min'`;
  const rows = await tx`
    select 1 from operations where id = ${operationId} and status in ('scheduling', 'running', 'failed') for update`;
  return rows.length > 0;
}

export async function recordDelivery(
  tx: Tx,
  operationId: OperationId,
  outcome: { readonly receipt: object } | { readonly failure: string },
): Promise<void> {
  const receipt = 'receipt' in outcome ? json(tx, outcome.receipt) : null;
  const failure = 'failure' in outcome ? outcome.failure : null;
  await tx`update deliveries set receipt = ${receipt}, failure = ${failure} where operation_id = ${operationId}`;
  await tx`update operations set run_at = now() where id = ${operationId}`;
  await tx`select pg_notify(${operationsChannel}, '')`;
}

/** What people call a branch or a snapshot, by its id. */
export async function selectDataNames(sql: Sql, projectId: ProjectId): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; name: string }[]>`
    select id, name from branches where project_id = ${projectId} union all
    select id, name from snapshots where project_id = ${projectId}`;
  return new Map(rows.map(({ id, name }) => [id, name]));
}
