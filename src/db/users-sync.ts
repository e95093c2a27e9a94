/**
 * The users of integrations on their way into tenants' `users_sync`. In the first half: the log of changes, which
 * integrations are behind it, and the schemas that are to be dropped. The log has two sources, see the view
 * `auth_user_log`. In the second half: how the users of a provider elsewhere get into that log. What is read there is
 * written under the reader's lease, so an older reading is never written after a newer one.
 */

import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import type { UserChange } from '../lib/users-sync.ts';
import { type AuthIntegrationRow, ofLiveProject } from './auth-integrations.ts';
import { first, json, one, type Sql, type Tx } from './client.ts';

export async function selectUserChanges(
  sql: Sql,
  providerProjectId: string,
  after: number,
  limit: number,
): Promise<UserChange[]> {
  return sql<UserChange[]>`
    select seq, user_id, kind, user_json as "user", occurred_at from auth_user_log
    where project_id = ${providerProjectId} and seq > ${after} order by seq limit ${limit}`;
}

/** What copying users needs to know about an integration. */
export interface UsersSyncTarget {
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
export async function selectUsersSyncTarget(sql: Sql, branchId: BranchId): Promise<UsersSyncTarget | undefined> {
  return first(
    await sql<UsersSyncTarget[]>`
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

/** For a tenant's database that turns out to be behind the recorded position. */
export async function recordUsersSyncPosition(sql: Sql, id: string, position: number): Promise<void> {
  await sql`update auth_integrations set synced_seq = ${position} where id = ${id}`;
}

export async function recordUsersSyncFailure(sql: Sql, id: string, error: string, waitMs: number): Promise<void> {
  await sql`
    update auth_integrations set sync_failures = sync_failures + 1, sync_error = ${error},
      sync_retry_at = now() + ${waitMs} * interval '1 ms'
    where id = ${id}`;
}

/** The table's content is no longer known: its data was exchanged, or its server crashed. */
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

export interface UsersSyncBehindRow {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly endpointId: EndpointId;
  readonly tenantUid: number | null;
  /** The last copy failed. */
  readonly isFailing: boolean;
}

/** Awake computes whose users, or schemas, are not what they should be. Those that sleep catch up as they wake. */
export async function selectUsersSyncBehind(sql: Sql): Promise<UsersSyncBehindRow[]> {
  return sql<UsersSyncBehindRow[]>`
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

export interface UsersSyncLag {
  /** Integrations whose compute is awake and whose table is not up to date. */
  readonly behind: number;
  /** Age of the oldest change among them that is not copied yet. */
  readonly lagSeconds: number;
  readonly failing: number;
  /** Integrations whose provider elsewhere cannot be read, asleep or awake. */
  readonly unreadable: number;
}

export async function selectUsersSyncLag(sql: Sql): Promise<UsersSyncLag> {
  return one(
    await sql<UsersSyncLag[]>`
      select count(*) filter (where l.at is not null or i.synced_at is null)::int as behind,
        coalesce(max(extract(epoch from now() - l.at)), 0)::float8 as lag_seconds,
        count(*) filter (where i.sync_error is not null)::int as failing,
        (select count(*)::int from auth_integrations
          where status = 'active' and follow_error is not null and ${ofLiveProject(sql)}) as unreadable
      from auth_integrations i
        join endpoints e on e.branch_id = i.branch_id and e.type = 'read_write' and e.deleting_at is null
        cross join lateral (
          select min(occurred_at) as at from auth_user_log u
          where u.project_id = i.provider_project_id and u.seq > i.synced_seq) l
      where i.status = 'active' and e.current_state = 'active'`,
  );
}

export const userHintsChannel = 'auth_user_hints';
/** Its payload is the id of the provider's project. */
const userChangesChannel = 'auth_user_changes';

/** In its own transaction or that of a request. A user that is named again while it is read is read again. */
export async function insertUserHint(sql: Sql, providerProjectId: string, userId: string): Promise<void> {
  await sql`
    with hint as (
      insert into auth_user_hints as h (project_id, user_id) values (${providerProjectId}, ${userId})
      on conflict (project_id, user_id) do update set version = h.version + 1)
    select pg_notify(${userHintsChannel}, ${providerProjectId})`;
}

export interface UserHint {
  readonly userId: string;
  readonly version: number;
}

export async function selectUserHints(sql: Sql, providerProjectId: string, limit: number): Promise<UserHint[]> {
  return sql<UserHint[]>`
    select user_id, version from auth_user_hints where project_id = ${providerProjectId} limit ${limit}`;
}

export async function deleteUserHint(sql: Sql, providerProjectId: string, hint: UserHint): Promise<void> {
  await sql`
    delete from auth_user_hints
    where project_id = ${providerProjectId} and user_id = ${hint.userId} and version = ${hint.version}`;
}

export interface FollowLease {
  readonly id: string;
  readonly lease: string;
  readonly ms: number;
}

export interface ClaimedIntegration extends AuthIntegrationRow {
  readonly isPollDue: boolean;
}

/** Integrations that have something to read, each for one reader at a time. */
export async function claimIntegrationsToFollow(
  sql: Sql,
  claim: { readonly lease: string; readonly ms: number; readonly limit: number },
): Promise<ClaimedIntegration[]> {
  return sql<ClaimedIntegration[]>`
    update auth_integrations i
    set follow_lease = ${claim.lease}, follow_until = now() + ${claim.ms} * interval '1 ms'
    where i.id in (
      select id from auth_integrations
      where status = 'active' and provider_url is not null and coalesce(follow_until, now()) <= now()
        and ${ofLiveProject(sql)}
        and (poll_at <= now()
          or exists (select from auth_user_hints h where h.project_id = auth_integrations.provider_project_id))
      order by follow_until nulls first limit ${claim.limit} for update skip locked)
    returning i.*, i.poll_at <= now() as is_poll_due`;
}

/** False when the lease is lost. Holds the integration until the transaction ends, which puts writers in order. */
export async function renewFollowLease(tx: Tx, { id, lease, ms }: FollowLease): Promise<boolean> {
  const { count } = await tx`
    update auth_integrations set follow_until = now() + ${ms} * interval '1 ms'
    where id = ${id} and follow_lease = ${lease} and status = 'active'`;
  return count > 0;
}

/** Gives up the lease; with `pollInMs`, all users were read. */
export async function endFollowing(
  sql: Sql,
  { id, lease }: FollowLease,
  change: { readonly pollInMs: number | null },
): Promise<void> {
  await sql`
    update auth_integrations set follow_lease = null, follow_until = null, follow_failures = 0, follow_error = null,
      poll_at = coalesce(now() + ${change.pollInMs}::float8 * interval '1 ms', poll_at)
    where id = ${id} and follow_lease = ${lease}`;
}

export async function releaseFollowing(sql: Sql, { id, lease }: FollowLease): Promise<void> {
  await sql`
    update auth_integrations set follow_lease = null, follow_until = null where id = ${id} and follow_lease = ${lease}`;
}

export async function recordFollowFailure(
  sql: Sql,
  { id, lease }: FollowLease,
  failure: { readonly error: string; readonly waitMs: number },
): Promise<void> {
  await sql`
    update auth_integrations set follow_lease = null, follow_until = now() + ${failure.waitMs} * interval '1 ms',
      follow_failures = follow_failures + 1, follow_error = ${failure.error}
    where id = ${id} and follow_lease = ${lease}`;
}

/** The time of the last activity, for which no event is sent: a user that differs in nothing else has not changed. */
const bare = (sql: Sql, column: string) => sql`(${sql(column)}.user_json - 'last_active_at_millis')`;

/** What differs from what was known becomes a change. A user that was deleted stays deleted. */
export async function insertSeenUsers(tx: Tx, providerProjectId: string, users: readonly object[]): Promise<number> {
  const { count } = await tx`
    insert into auth_user_changes (project_id, user_id, kind, user_json)
    select ${providerProjectId}, seen.user_id, case when known.kind is null then 'created' else 'updated' end,
      seen.user_json
    from (select distinct on (u ->> 'id') (u ->> 'id')::uuid as user_id, u as user_json
        from jsonb_array_elements(${json(tx, users)}) u) seen
      left join lateral (
        select kind, user_json from auth_user_changes c
        where c.project_id = ${providerProjectId} and c.user_id = seen.user_id order by seq desc limit 1) known on true
    where known.kind is null or (known.kind <> 'deleted' and ${bare(tx, 'known')} <> ${bare(tx, 'seen')})`;
  if (count > 0) await tx`select pg_notify(${userChangesChannel}, ${providerProjectId})`;
  return count;
}

/** A user that was never known leaves nothing behind. */
export async function insertGoneUser(tx: Tx, providerProjectId: string, userId: string): Promise<number> {
  const { count } = await tx`
    insert into auth_user_changes (project_id, user_id, kind, user_json)
    select ${providerProjectId}, user_id, 'deleted', jsonb_build_object('id', user_id)
    from (select user_id, kind from auth_user_changes
      where project_id = ${providerProjectId} and user_id = ${userId} order by seq desc limit 1) known
    where kind <> 'deleted'`;
  if (count > 0) await tx`select pg_notify(${userChangesChannel}, ${providerProjectId})`;
  return count;
}

export async function selectPresentUserIds(sql: Sql, providerProjectId: string): Promise<string[]> {
  const rows = await sql<{ userId: string }[]>`
    select user_id from (
      select distinct on (user_id) user_id, kind from auth_user_changes
      where project_id = ${providerProjectId} order by user_id, seq desc) last
    where kind <> 'deleted'`;
  return rows.map(({ userId }) => userId);
}

/** As in the embedded provider's log, the last change of every user stays; of an unknown project, none does. */
export async function deleteOvertakenUserChanges(sql: Sql, olderThan: Date): Promise<number> {
  const { count: overtaken } = await sql`
    delete from auth_user_changes c where occurred_at < ${olderThan} and exists (
      select from auth_user_changes later
      where later.project_id = c.project_id and later.user_id = c.user_id and later.seq > c.seq)`;
  const unknown = sql`not exists (select from auth_integrations i where i.provider_project_id = t.project_id)`;
  const { count: orphaned } = await sql`delete from auth_user_changes t where ${unknown}`;
  await sql`delete from auth_user_hints t where ${unknown}`;
  return overtaken + orphaned;
}
