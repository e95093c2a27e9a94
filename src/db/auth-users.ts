/**
 * The users of integrations on their way into tenants' databases: the log of changes, which integrations are behind
 * it, and the schemas that are to be dropped. The log has two sources, see the view `auth_user_log`.
 */
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { first, one, type Sql } from './client.ts';

export interface UserChangeRow {
  readonly seq: number;
  readonly userId: string;
  readonly kind: 'created' | 'updated' | 'deleted';
  readonly userJson: { readonly [key: string]: unknown };
  readonly occurredAt: Date;
}

export async function selectUserChanges(
  sql: Sql,
  providerProjectId: string,
  after: number,
  limit: number,
): Promise<UserChangeRow[]> {
  return sql<UserChangeRow[]>`
    select seq, user_id, kind, user_json, occurred_at from auth_user_log
    where project_id = ${providerProjectId} and seq > ${after} order by seq limit ${limit}`;
}

/** What the copying needs to know of an integration. */
export interface UsersTarget {
  readonly id: string;
  readonly providerProjectId: string;
  /** As the server knows it. */
  readonly databaseName: string;
  readonly roleName: string;
  readonly syncedSeq: number;
  readonly lastSeq: number;
  readonly isBehind: boolean;
  readonly syncFailures: number;
}

const lastSeq = (sql: Sql) => sql`greatest(
  (select max(seq) from stack_user_changes where project_id = i.provider_project_id),
  (select max(seq) from auth_user_changes where project_id = i.provider_project_id), 0)`;

/** The integration whose users live on a branch. */
export async function selectUsersTarget(sql: Sql, branchId: BranchId): Promise<UsersTarget | undefined> {
  return first(
    await sql<UsersTarget[]>`
      select i.id, i.provider_project_id, i.role_name, i.synced_seq, i.sync_failures, l.seq as last_seq,
        coalesce(d.applied_name, d.name, i.database_name) as database_name,
        i.synced_at is null or i.synced_seq < l.seq as is_behind
      from auth_integrations i left join databases d on d.id = i.database_id and d.dropped_at is null
        cross join lateral (select ${lastSeq(sql)} as seq) l
      where i.branch_id = ${branchId} and i.status = 'active'`,
  );
}

export async function recordUsersSynced(sql: Sql, id: string, position: number): Promise<void> {
  await sql`
    update auth_integrations set synced_seq = ${position}, synced_at = now(), sync_failures = 0, sync_error = null,
      sync_retry_at = null
    where id = ${id}`;
}

/** Found to be less far than was thought. */
export async function recordUsersPosition(sql: Sql, id: string, position: number): Promise<void> {
  await sql`update auth_integrations set synced_seq = ${position} where id = ${id}`;
}

export async function recordUsersFailure(sql: Sql, id: string, error: string, waitMs: number): Promise<void> {
  await sql`
    update auth_integrations set sync_failures = sync_failures + 1, sync_error = ${error},
      sync_retry_at = now() + ${waitMs} * interval '1 ms'
    where id = ${id}`;
}

/** What the table holds is not known any more: its data were exchanged, or its server ended by accident. */
export async function doubtUsersSynced(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`update auth_integrations set synced_at = null where branch_id = ${branchId} and synced_at is not null`;
}

export async function selectSchemaDrops(sql: Sql, branchId: BranchId): Promise<{ readonly databaseName: string }[]> {
  return sql`select database_name from auth_schema_drops where branch_id = ${branchId}`;
}

export async function deleteSchemaDrop(sql: Sql, branchId: BranchId, databaseName: string): Promise<void> {
  await sql`delete from auth_schema_drops where branch_id = ${branchId} and database_name = ${databaseName}`;
}

export async function postponeSchemaDrop(sql: Sql, branchId: BranchId, databaseName: string): Promise<void> {
  await sql`
    update auth_schema_drops set retry_at = now() + interval '30 s'
    where branch_id = ${branchId} and database_name = ${databaseName}`;
}

export interface BehindRow {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly endpointId: EndpointId;
  readonly tenantUid: number | null;
  /** Its last copying failed. */
  readonly isFailing: boolean;
}

/** Awake computes whose users, or schemas, are not what they should be. Those that sleep catch up as they wake. */
export async function selectBranchesBehind(sql: Sql): Promise<BehindRow[]> {
  return sql<BehindRow[]>`
    with due as (
      select i.branch_id, i.sync_error is not null as is_failing from auth_integrations i
      where i.status = 'active' and coalesce(i.sync_retry_at, now()) <= now()
        and (i.synced_at is null or i.synced_seq < ${lastSeq(sql)})
      union all select branch_id, false from auth_schema_drops where retry_at <= now())
    select e.project_id, e.branch_id, e.id as endpoint_id, p.tenant_uid, bool_or(due.is_failing) as is_failing
    from due join endpoints e on e.branch_id = due.branch_id join projects p on p.id = e.project_id
    where e.type = 'read_write' and e.current_state = 'active' and e.pending_state is null
      and e.deleting_at is null and p.deleting_at is null
    group by e.id, p.id`;
}

export interface UsersLag {
  /** Integrations whose compute is awake and whose table is not up to date. */
  readonly behind: number;
  /** Age of the oldest change among them that is not copied yet. */
  readonly lagSeconds: number;
  readonly failing: number;
  /** Integrations whose provider elsewhere cannot be read, asleep or awake. */
  readonly unreadable: number;
}

export async function selectUsersLag(sql: Sql): Promise<UsersLag> {
  return one(
    await sql<UsersLag[]>`
      select count(*) filter (where l.at is not null or i.synced_at is null)::int as behind,
        coalesce(max(extract(epoch from now() - l.at)), 0)::float8 as lag_seconds,
        count(*) filter (where i.sync_error is not null)::int as failing,
        (select count(*)::int from auth_integrations where status = 'active' and follow_error is not null) as unreadable
      from auth_integrations i
        join endpoints e on e.branch_id = i.branch_id and e.type = 'read_write' and e.deleting_at is null
        cross join lateral (
          select min(occurred_at) as at from auth_user_log u
          where u.project_id = i.provider_project_id and u.seq > i.synced_seq) l
      where i.status = 'active' and e.current_state = 'active'`,
  );
}
