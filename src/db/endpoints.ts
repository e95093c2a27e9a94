/** Rows of `endpoints`. `currentState` and `address` are observations; `pendingState` is intent. */
import type { PlanName } from '../lib/config.ts';
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress, MaintenanceWindow, ReplicationSlot, SizeRange } from '../lib/model.ts';
import { assignments, first, json, one, type Sql, type Tx } from './client.ts';
import { changesChannel, unfinished } from './operations.ts';

export type EndpointType = 'read_write' | 'read_only';
export type EndpointState = 'init' | 'active' | 'idle';

export interface PreloadLibraries {
  readonly use_defaults?: boolean;
  readonly enabled_libraries?: string[];
}

export interface EndpointSettings {
  readonly pg_settings?: Readonly<Record<string, string>>;
  readonly pgbouncer_settings?: Readonly<Record<string, string>>;
  readonly preload_libraries?: PreloadLibraries;
}

export interface ServerState {
  readonly settings: Readonly<Record<string, string>>;
  /** The size that was asked for, and `given`, the part of it that the plan allows. */
  readonly minCu: number;
  readonly maxCu: number;
  readonly given: SizeRange;
  /** The build of Postgres that it runs. */
  readonly release: string | null;
  /** Its branch was over its size quota, or the disk full, when it was given these settings, which turn writes off. */
  readonly writesOff?: boolean;
  /** That was because of the disk. */
  readonly isDiskFull?: boolean;
  /** It was started with a way out of the machine. */
  readonly outbound?: boolean;
}

/** What is done about a compute while the disk is full. */
export type DiskGuard = 'read_only' | 'held';

/** How far a read replica was behind its primary. */
export interface ReplicationLag {
  readonly lagBytes: number;
  readonly lagSeconds: number;
}

export type WorkKind = 'query' | 'transaction' | 'background_worker' | 'replication' | 'operation';

/** What a compute was doing when it was last asked; times are ISO texts. */
export interface WorkSeen {
  readonly observedAt: string;
  readonly lastWorkAt: string | null;
  readonly work: {
    readonly kind: WorkKind;
    readonly description: string;
    readonly pid?: number;
    readonly role?: string;
    readonly applicationName?: string;
    readonly slot?: string;
    readonly since?: string;
  } | null;
}

export interface EndpointRow {
  readonly id: EndpointId;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly type: EndpointType;
  readonly name: string | null;
  readonly minCu: number;
  readonly maxCu: number;
  readonly suspendTimeoutSeconds: number;
  readonly settings: EndpointSettings;
  /** Whether the pooled host of the endpoint is open. */
  readonly poolerEnabled: boolean;
  readonly disabled: boolean;
  readonly passwordlessAccess: boolean;
  readonly currentState: EndpointState;
  readonly pendingState: 'active' | 'idle' | null;
  readonly address: ComputeAddress | null;
  readonly generation: number;
  readonly server: ServerState | null;
  readonly replication: ReplicationLag | null;
  /** The size in force, within min and max; null while it does not run, or runs without limits. */
  readonly currentCu: number | null;
  /** What it takes of a stated capacity, from its start on. */
  readonly reservedCu: number | null;
  readonly workSeen: WorkSeen | null;
  /** Null while there is room. */
  readonly diskGuard: DiskGuard | null;
  /** Of the project's organization; only where a row is read or written to be shown, as `isChanging`. */
  readonly plan?: PlanName;
  /** An operation that changes its size or settings has not ended yet. */
  readonly isChanging?: boolean;
  readonly lastActive: Date | null;
  readonly startedAt: Date | null;
  readonly suspendedAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly deletingAt: Date | null;
  /** Of a compute that was deleted with its branch, and comes back with it. */
  readonly recoverableUntil: Date | null;
}

export type NewEndpoint = Pick<
  EndpointRow,
  | 'id'
  | 'projectId'
  | 'branchId'
  | 'type'
  | 'name'
  | 'minCu'
  | 'maxCu'
  | 'suspendTimeoutSeconds'
  | 'settings'
  | 'poolerEnabled'
  | 'disabled'
  | 'passwordlessAccess'
>;

export async function insertEndpoint(
  sql: Sql,
  endpoint: NewEndpoint,
  pendingState: 'active' | null,
): Promise<EndpointRow> {
  const row = { ...endpoint, settings: json(sql, endpoint.settings), currentState: 'init', pendingState };
  return one(await sql<EndpointRow[]>`insert into endpoints ${sql(row)} returning *`);
}

/** Marks the state of an operation that changes the size or the settings of its endpoint. */
export const endpointChange = { changes_endpoint: true } as const;

const toShow = (sql: Sql) => sql`
  (select o.plan from projects p join organizations o on o.id = p.organization_id where p.id = e.project_id) as plan,
  exists (
    select 1 from operations c where c.endpoint_id = e.id and c.status in ${unfinished(sql)}
      and c.state @> ${json(sql, endpointChange)}) as is_changing`;

export async function selectEndpoint(sql: Sql, projectId: ProjectId, id: EndpointId): Promise<EndpointRow | undefined> {
  return first(
    await sql<EndpointRow[]>`
      select e.*, ${toShow(sql)} from endpoints e
      where e.project_id = ${projectId} and e.id = ${id} and e.deleting_at is null`,
  );
}

/** For operations and the proxy, which do not know the project. */
export async function selectEndpointInAnyState(sql: Sql, id: EndpointId): Promise<EndpointRow | undefined> {
  return first(await sql<EndpointRow[]>`select * from endpoints where id = ${id}`);
}

export async function selectEndpoints(sql: Sql, projectId: ProjectId, branchId?: BranchId): Promise<EndpointRow[]> {
  return sql<EndpointRow[]>`
    select e.*, ${toShow(sql)} from endpoints e
    where e.project_id = ${projectId} and e.deleting_at is null
      and (${branchId ?? null}::text is null or e.branch_id = ${branchId ?? null})
    order by e.created_at, e.id`;
}

export async function selectReadWriteEndpoint(sql: Sql, branchId: BranchId): Promise<EndpointRow | undefined> {
  const [primary] = await sql<EndpointRow[]>`
    select * from endpoints where branch_id = ${branchId} and type = 'read_write' and deleting_at is null`;
  return primary;
}

/** Not one whose server still runs on the branch that it is about to leave for this one. */
export async function selectPrimaryInPlace(sql: Sql, branchId: BranchId): Promise<EndpointRow | undefined> {
  const [primary] = await sql<EndpointRow[]>`
    select e.* from endpoints e where e.branch_id = ${branchId} and e.type = 'read_write' and e.deleting_at is null
      and not exists (select 1 from operations o where o.endpoint_id = e.id and o.state ? 'moved_from'
        and o.status in ${unfinished(sql)})`;
  return primary;
}

/** Those that should have a process. */
export async function selectActiveEndpoints(sql: Sql): Promise<EndpointRow[]> {
  return sql<EndpointRow[]>`
    select e.* from endpoints e join projects p on p.id = e.project_id and p.deleting_at is null
    where e.current_state = 'active' and e.deleting_at is null`;
}

export interface ActiveCompute extends EndpointRow {
  readonly tenantUid: number | null;
}

/** The same, with what a reference for the driver needs; those of a project that is being deleted are left out. */
export async function selectActiveComputes(sql: Sql): Promise<ActiveCompute[]> {
  return sql<ActiveCompute[]>`
    select e.*, p.tenant_uid from endpoints e join projects p on p.id = e.project_id and p.deleting_at is null
    where e.current_state = 'active' and e.deleting_at is null`;
}

export interface NeverSleeping extends EndpointRow {
  readonly maintenanceWindow: MaintenanceWindow;
}

/** Awake, and kept so by their setting; with their plan. */
export async function selectNeverSleeping(sql: Sql): Promise<NeverSleeping[]> {
  return sql<NeverSleeping[]>`
    select e.*, ${toShow(sql)}, p.settings -> 'maintenance_window' as maintenance_window
    from endpoints e join projects p on p.id = e.project_id
    where e.suspend_timeout_seconds < 0 and e.current_state = 'active' and e.pending_state is null
      and e.deleting_at is null and p.deleting_at is null and p.settings -> 'maintenance_window' is not null`;
}

/** Awake primaries whose branch has a size quota, or whose writes are off or should be for whatever reason. */
export async function selectPrimariesWithSizeQuota(sql: Sql): Promise<ActiveCompute[]> {
  return sql<ActiveCompute[]>`
    select e.*, p.tenant_uid from endpoints e join projects p on p.id = e.project_id and p.deleting_at is null
    where e.current_state = 'active' and e.pending_state is null and e.deleting_at is null and e.type = 'read_write'
      and ((p.settings -> 'quota' ->> 'logical_size_bytes')::bigint > 0 or (e.server ->> 'writesOff')::boolean
        or e.disk_guard is not null)`;
}

/** Those that something is done about because the disk is, or was, full. */
export async function selectDiskGuarded(sql: Sql): Promise<EndpointRow[]> {
  return sql<EndpointRow[]>`select * from endpoints where disk_guard is not null`;
}

/** Not a change that somebody made to the endpoint, so `updated_at` stays. */
export async function updateDiskGuard(sql: Sql, id: EndpointId, guard: DiskGuard | null): Promise<void> {
  await sql`update endpoints set disk_guard = ${guard} where id = ${id}`;
}

export type EndpointChange = Partial<
  Omit<
    EndpointRow,
    | 'id'
    | 'projectId'
    | 'createdAt'
    | 'updatedAt'
    | 'generation'
    | 'plan'
    | 'isChanging'
    | 'replication'
    | 'workSeen'
    | 'diskGuard'
  >
>;

export async function updateEndpoint(sql: Sql, id: EndpointId, change: EndpointChange): Promise<EndpointRow> {
  const address = change.address && json(sql, change.address);
  const server = change.server && json(sql, change.server);
  const settings = change.settings && json(sql, change.settings);
  // Sent together.
  const [rows] = await Promise.all([
    sql<EndpointRow[]>`
      update endpoints e ${assignments(sql, { ...change, address, server, settings })}
      where e.id = ${id} returning e.*, ${toShow(sql)}`,
    // Proxies start nothing new on a server whose route is closed.
    change.address === null ? sql`select pg_notify(${changesChannel}, ${id})` : undefined,
  ]);
  return one(rows);
}

/** Not a change of the endpoint, so `updated_at` stays. */
export async function updateReplication(sql: Sql, id: EndpointId, lag: ReplicationLag | null): Promise<void> {
  await sql`update endpoints set replication = ${lag === null ? null : json(sql, lag)} where id = ${id}`;
}

/** Not a change of the endpoint either. */
export async function updateWorkSeen(sql: Sql, id: EndpointId, seen: WorkSeen): Promise<void> {
  await sql`update endpoints set work_seen = ${json(sql, seen)} where id = ${id}`;
}

/** The fence for the next start. */
export async function raiseGeneration(sql: Sql, id: EndpointId): Promise<number> {
  return one(
    await sql<{ generation: number }[]>`
      update endpoints set generation = generation + 1 where id = ${id} returning generation`,
  ).generation;
}

export async function lockEndpoint(tx: Tx, id: EndpointId): Promise<EndpointRow | undefined> {
  return first(await tx<EndpointRow[]>`select * from endpoints where id = ${id} and deleting_at is null for update`);
}

/** Later activity wins, so that batches may arrive in any order. */
export async function updateLastActive(sql: Sql, activity: ReadonlyMap<string, Date>): Promise<void> {
  const ids = [...activity.keys()];
  const times = [...activity.values()].map((time) => time.toISOString());
  await sql`
    update endpoints e set last_active = greatest(e.last_active, a.at)
    from unnest(${ids}::text[], ${times}::timestamptz[]) as a(id, at) where e.id = a.id`;
}

/** Records a use, and returns the row as it is after the transaction that held it. */
export async function touchEndpoint(sql: Sql, id: EndpointId): Promise<EndpointRow> {
  return one(
    await sql<EndpointRow[]>`
      update endpoints set last_active = greatest(last_active, clock_timestamp()) where id = ${id} returning *`,
  );
}

/**
 * Moves the endpoints of one branch to another. A branch has one primary: if both have, they change places. Nothing may
 * run on them.
 */
export async function moveEndpoints(tx: Tx, from: BranchId, to: BranchId): Promise<void> {
  const replacing = await selectReadWriteEndpoint(tx, from);
  const replaced = replacing && (await selectReadWriteEndpoint(tx, to));
  // Out of the way of the unique index until its new place is free.
  if (replaced) await tx`update endpoints set deleting_at = now() where id = ${replaced.id}`;
  await tx`update endpoints set branch_id = ${to}, updated_at = now() where branch_id = ${from} and deleting_at is null`;
  if (replaced) await tx`update endpoints set branch_id = ${from}, deleting_at = null where id = ${replaced.id}`;
}

export async function deleteEndpointRow(sql: Sql, id: EndpointId): Promise<void> {
  await sql`delete from endpoints where id = ${id}`;
}

export interface Publisher extends ActiveCompute {
  readonly replicationSlots: readonly ReplicationSlot[] | null;
}

/** Primaries that take part in logical replication, with the slots on record. */
export async function selectPublishers(sql: Sql): Promise<Publisher[]> {
  return sql<Publisher[]>`
    select e.*, p.tenant_uid, b.replication_slots
    from endpoints e join branches b on b.id = e.branch_id join projects p on p.id = e.project_id
    where e.current_state = 'active' and e.pending_state is null and e.type = 'read_write' and e.deleting_at is null
      and p.deleting_at is null and (p.settings ->> 'enable_logical_replication')::boolean`;
}

export async function countEndpointsByState(
  sql: Sql,
): Promise<{ readonly state: EndpointState; readonly count: number }[]> {
  return sql`
    select e.current_state as state, count(*)::int as count
    from endpoints e join projects p on p.id = e.project_id and p.deleting_at is null
    where e.deleting_at is null group by 1 order by 1`;
}
