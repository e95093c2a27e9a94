/** Rows of `branches`. */
import type { BranchId, EndpointId, ProjectId, SnapshotId, UserId } from '../lib/ids.ts';
import type { BranchHistory, ReplicationSlot } from '../lib/model.ts';
import { assignments, first, json, one, type Sql } from './client.ts';
import type { Usage } from './consumption.ts';

export interface BranchRow {
  readonly id: BranchId;
  readonly projectId: ProjectId;
  readonly name: string;
  readonly parentId: BranchId | null;
  readonly parentLsn: string | null;
  readonly parentTimestamp: Date | null;
  readonly currentState: 'init' | 'resetting' | 'ready';
  readonly pendingState: string | null;
  readonly stateChangedAt: Date;
  readonly logicalSize: number | null;
  /** Of its project; null or 0 is none. */
  readonly sizeQuota: number | null;
  readonly isDefault: boolean;
  readonly protected: boolean;
  readonly initSource: string;
  readonly expiresAt: Date | null;
  readonly annotation: Readonly<Record<string, string>>;
  readonly receipt: Readonly<Record<string, string | number | null>> | null;
  /** No server has run since roles and databases were recorded as the last one left them. */
  readonly catalogKept: boolean;
  /** As its server last reported them; null until it was asked. */
  readonly replicationSlots: readonly ReplicationSlot[] | null;
  /** As the driver last reported it; null until it was asked about the data that the branch has now. */
  readonly history: BranchHistory | null;
  readonly lastResetAt: Date | null;
  /** The snapshot that it was made from. */
  readonly restoredFrom: SnapshotId | null;
  /** The branch that it is to replace once the restore is finalized, or has replaced. */
  readonly restoredAs: BranchId | null;
  readonly restoreStatus: 'restored' | 'finalized' | null;
  /** Counters of one month. */
  readonly usage: Usage;
  readonly createdBy: UserId;
  readonly createdByName: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly deletingAt: Date | null;
  /** Of a deleted branch that has not been removed for good yet, as is the next one. */
  readonly recoverableUntil: Date | null;
  readonly deletionMethod: DeletionMethod | null;
}

/** By somebody, or because its time was up. */
export type DeletionMethod = 'user' | 'ttl';

export type NewBranch = Pick<
  BranchRow,
  | 'id'
  | 'projectId'
  | 'name'
  | 'parentId'
  | 'parentTimestamp'
  | 'isDefault'
  | 'protected'
  | 'initSource'
  | 'expiresAt'
  | 'annotation'
  | 'createdBy'
> &
  Partial<Pick<BranchRow, 'parentLsn'>>;

export type BranchSort = 'name' | 'created_at' | 'updated_at';

const withAuthor = (sql: Sql) => sql`
  b.*, u.name as created_by_name, (
    select (p.settings -> 'quota' ->> 'logical_size_bytes')::bigint from projects p where p.id = b.project_id
  ) as size_quota`;

export async function insertBranch(sql: Sql, branch: NewBranch): Promise<BranchRow> {
  const row = {
    ...branch,
    annotation: json(sql, branch.annotation),
    currentState: 'init',
    pendingState: 'ready',
  };
  return one(
    await sql<BranchRow[]>`
      with b as (insert into branches ${sql(row)} returning *)
      select ${withAuthor(sql)} from b join users u on u.id = b.created_by`,
  );
}

export async function selectBranch(sql: Sql, projectId: ProjectId, id: BranchId): Promise<BranchRow | undefined> {
  return first(
    await sql<BranchRow[]>`
      select ${withAuthor(sql)} from branches b join users u on u.id = b.created_by
      where b.project_id = ${projectId} and b.id = ${id} and b.deleting_at is null`,
  );
}

/** For operations, which still work on a branch that is being deleted. */
export async function selectBranchInAnyState(sql: Sql, id: BranchId): Promise<BranchRow | undefined> {
  return first(
    await sql<BranchRow[]>`
      select ${withAuthor(sql)} from branches b join users u on u.id = b.created_by where b.id = ${id}`,
  );
}

/** The branch that an endpoint is on, in any state. */
export async function selectBranchOfEndpoint(sql: Sql, id: EndpointId): Promise<BranchRow | undefined> {
  return first(
    await sql<BranchRow[]>`
      select ${withAuthor(sql)} from endpoints e join branches b on b.id = e.branch_id join users u on u.id = b.created_by
      where e.id = ${id}`,
  );
}

/**
 * At each wake, nap and change of the data, after which the history is due too. Not a change of the branch, so
 * `updated_at` stays.
 */
export async function updateCatalogKept(sql: Sql, id: BranchId, catalogKept: boolean): Promise<void> {
  await sql`update branches set catalog_kept = ${catalogKept}, history_due_at = now() where id = ${id}`;
}

/** So that the next start of each compute brings its roles and databases up to date. */
export async function forgetCatalogsKept(sql: Sql, projectId: ProjectId): Promise<void> {
  await sql`update branches set catalog_kept = false where project_id = ${projectId}`;
}

export async function selectDefaultBranch(sql: Sql, projectId: ProjectId): Promise<BranchRow | undefined> {
  return first(
    await sql<BranchRow[]>`
      select ${withAuthor(sql)} from branches b join users u on u.id = b.created_by
      where b.project_id = ${projectId} and b.is_default and b.deleting_at is null`,
  );
}

export async function isBranchNameTaken(sql: Sql, projectId: ProjectId, name: string): Promise<boolean> {
  const rows = await sql`
    select 1 from branches where project_id = ${projectId} and name = ${name} and deleting_at is null`;
  return rows.length > 0;
}

export async function selectProtectedBranch(
  sql: Sql,
  projectId: ProjectId,
): Promise<{ readonly name: string } | undefined> {
  return first(
    await sql<{ name: string }[]>`
      select name from branches where project_id = ${projectId} and protected and deleting_at is null limit 1`,
  );
}

export async function selectExpiredBranches(sql: Sql, now: Date): Promise<Pick<BranchRow, 'id' | 'projectId'>[]> {
  return sql`select id, project_id from branches where expires_at <= ${now} and deleting_at is null`;
}

export interface BranchQuery {
  readonly search: string | null;
  readonly sortBy: BranchSort;
  readonly descending: boolean;
  /** Sort value (as text) and id of the last branch on the previous page. */
  readonly after: { readonly value: string; readonly id: string } | null;
  readonly limit: number | null;
  /** Deleted branches that can still be recovered at this time, too. */
  readonly deletedAt?: Date | null;
}

export async function selectBranches(
  sql: Sql,
  projectId: ProjectId,
  query: BranchQuery,
): Promise<(BranchRow & { readonly sortValue: string })[]> {
  const column = sql(`b.${query.sortBy}`);
  const cast = query.sortBy === 'name' ? sql`text` : sql`timestamptz`;
  const direction = query.descending ? sql`desc` : sql`asc`;
  const beyond = query.descending ? sql`<` : sql`>`;
  const page =
    query.after === null
      ? sql``
      : sql`and (${column}, b.id) ${beyond} (${query.after.value}::text::${cast}, ${query.after.id})`;
  return sql<(BranchRow & { sortValue: string })[]>`
    select ${withAuthor(sql)}, ${column}::text as sort_value from branches b join users u on u.id = b.created_by
    where b.project_id = ${projectId} and (b.deleting_at is null or b.recoverable_until > ${query.deletedAt ?? null})
      ${matching(sql, query.search)} ${page}
    order by ${column} ${direction}, b.id ${direction} limit ${query.limit}`;
}

export async function countBranches(sql: Sql, projectId: ProjectId, search: string | null): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from branches b
      where b.project_id = ${projectId} and b.deleting_at is null ${matching(sql, search)}`,
  ).count;
}

/** One, and as many more as were restored from snapshots. */
export async function countRoots(sql: Sql, projectId: ProjectId): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from branches
      where project_id = ${projectId} and parent_id is null and deleting_at is null`,
  ).count;
}

function matching(sql: Sql, search: string | null) {
  if (search === null) return sql``;
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`;
  return sql`and (b.name ilike ${pattern} or b.id ilike ${pattern})`;
}

export type ChildBranch = Pick<BranchRow, 'id' | 'name' | 'deletingAt' | 'recoverableUntil'>;

/** Children that still exist, deleted ones included. */
export async function selectChildren(sql: Sql, id: BranchId): Promise<ChildBranch[]> {
  return sql`select id, name, deleting_at, recoverable_until from branches where parent_id = ${id} order by created_at`;
}

/** Hands all children of a branch to another one. */
export async function moveChildren(sql: Sql, from: BranchId, to: BranchId): Promise<void> {
  await sql`update branches set parent_id = ${to}, updated_at = now() where parent_id = ${from} and id <> ${to}`;
}

export type BranchChange = Partial<
  Pick<
    BranchRow,
    | 'name'
    | 'protected'
    | 'expiresAt'
    | 'isDefault'
    | 'pendingState'
    | 'currentState'
    | 'logicalSize'
    | 'deletingAt'
    | 'recoverableUntil'
    | 'deletionMethod'
    | 'parentId'
    | 'parentLsn'
    | 'parentTimestamp'
    | 'initSource'
    | 'lastResetAt'
    | 'restoredFrom'
    | 'restoredAs'
    | 'restoreStatus'
  >
> & { readonly receipt?: object | null };

export async function updateBranch(sql: Sql, id: BranchId, change: BranchChange): Promise<BranchRow> {
  const stateChangedAt =
    change.currentState === undefined && change.pendingState === undefined ? undefined : new Date();
  const receipt = change.receipt && json(sql, change.receipt);
  return one(
    await sql<BranchRow[]>`
      with b as (update branches ${assignments(sql, { ...change, receipt, stateChangedAt })} where id = ${id} returning *)
      select ${withAuthor(sql)} from b join users u on u.id = b.created_by`,
  );
}

/** Not a user's change, so `updated_at` stays. */
export async function updateLogicalSize(sql: Sql, id: BranchId, bytes: number): Promise<void> {
  await sql`update branches set logical_size = ${bytes} where id = ${id} and logical_size is distinct from ${bytes}`;
}

/** Not a user's change either. */
export async function updateReplicationSlots(
  sql: Sql,
  id: BranchId,
  slots: readonly ReplicationSlot[] | null,
): Promise<void> {
  await sql`update branches set replication_slots = ${slots && json(sql, slots)} where id = ${id}`;
}

/** Nobody streams from a slot of a server that is asleep. */
export async function markSleepingSlotsInactive(sql: Sql): Promise<void> {
  await sql`
    update branches b set replication_slots =
      (select jsonb_agg(slot || '{"active": false}') from jsonb_array_elements(replication_slots) slot)
    where replication_slots is not null and replication_slots @> '[{"active": true}]' and not exists (
      select 1 from endpoints e where e.branch_id = b.id and e.type = 'read_write' and e.current_state = 'active')`;
}

/** A new branch has what its parent has. */
export async function copyLogicalSize(sql: Sql, from: BranchId, to: BranchId): Promise<void> {
  await sql`
    update branches b set logical_size = p.logical_size from branches p where p.id = ${from} and b.id = ${to}`;
}

/** Children that are on their way out too may go after it. */
export async function deleteBranchRow(sql: Sql, id: BranchId): Promise<void> {
  await sql`
    update branches set parent_id = null
    where parent_id = ${id} and deleting_at is not null and recoverable_until is null`;
  await sql`delete from branches where id = ${id}`;
}
