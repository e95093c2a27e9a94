/** Sizes of running computes: the one in force, and how it came about (`endpoint_size_changes`). */
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import { first, one, type Sql, type Tx } from './client.ts';
import type { EndpointSettings, ServerState } from './endpoints.ts';

/** A running compute, with what is needed to size it. */
export interface RunningCompute {
  readonly id: EndpointId;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly tenantUid: number | null;
  readonly generation: number;
  /** Null where its size is not enforced. */
  readonly currentCu: number | null;
  readonly settings: EndpointSettings;
  readonly server: ServerState;
  readonly type: 'read_write' | 'read_only';
  readonly replicationLagBytes: number | null;
  readonly databaseBytes: number | null;
  /** Processes that the kernel killed because memory ran out, as far as they are on record. */
  readonly knownKills: number;
}

/** Running computes with no pending change. `ranges` leaves out those of a fixed size. */
export async function selectRunningComputes(sql: Sql, only: 'ranges' | 'all'): Promise<RunningCompute[]> {
  return sql<RunningCompute[]>`
    select e.id, e.project_id, e.branch_id, p.tenant_uid, e.generation, e.current_cu, e.settings,
      e.server, e.type, b.logical_size as database_bytes, (e.replication ->> 'lagBytes')::bigint as replication_lag_bytes,
      case when e.kills_generation = e.generation then e.kills else 0 end as known_kills
    from endpoints e join projects p on p.id = e.project_id and p.deleting_at is null join branches b on b.id = e.branch_id
    where e.current_state = 'active' and e.pending_state is null and e.deleting_at is null and e.server is not null
      ${only === 'all' ? sql`` : sql`and e.current_cu is not null and e.min_cu < e.max_cu`}`;
}

export interface SizeChange {
  readonly at: Date;
  readonly fromCu: number;
  readonly toCu: number;
  readonly reason: string;
}

/** False when the compute is no longer the one that was observed. Not a change of the endpoint: `updated_at` stays. */
export async function recordSize(
  tx: Tx,
  of: { readonly id: EndpointId; readonly generation: number },
  change: Omit<SizeChange, 'at'>,
): Promise<boolean> {
  const updated = await tx`
    update endpoints set current_cu = ${change.toCu}
    where id = ${of.id} and generation = ${of.generation} and current_cu = ${change.fromCu}
      and current_state = 'active' returning id`;
  if (updated.length === 0) return false;
  const row = { endpointId: of.id, ...change };
  await tx`insert into endpoint_size_changes ${tx(row)}`;
  return true;
}

export async function selectSizeChanges(
  sql: Sql,
  id: EndpointId,
  period: { readonly from: Date; readonly to: Date; readonly limit: number },
): Promise<SizeChange[]> {
  return sql<SizeChange[]>`
    select at, from_cu, to_cu, reason from endpoint_size_changes
    where endpoint_id = ${id} and at >= ${period.from} and at < ${period.to}
    order by at desc limit ${period.limit}`;
}

/** Sum of the sizes of all running computes. */
export async function sumCurrentCu(sql: Sql): Promise<number> {
  return one(
    await sql<{ cu: number }[]>`
      select coalesce(sum(coalesce(current_cu, min_cu)), 0)::float8 as cu
      from endpoints where current_state = 'active' and deleting_at is null`,
  ).cu;
}

/** What others hold of a stated capacity: their smallest sizes, from their start on. */
export interface HeldCapacity {
  readonly cu: number;
  readonly computes: number;
}

export async function selectHeldCapacity(sql: Sql, except: EndpointId): Promise<HeldCapacity> {
  return one(
    await sql<HeldCapacity[]>`
      select coalesce(sum(coalesce(reserved_cu, min_cu)), 0)::float8 as cu, count(*)::int as computes
      from endpoints
      where (reserved_cu is not null or current_state = 'active') and deleting_at is null and id <> ${except}`,
  );
}

/** One start at a time: two concurrent ones must not both get the last of the capacity. */
export async function lockCapacity(tx: Tx): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtext('catnap capacity'))`;
}

export async function updateReservedCu(tx: Tx, id: EndpointId, cu: number): Promise<void> {
  await tx`update endpoints set reserved_cu = ${cu} where id = ${id}`;
}

/** Records the kills, and returns how many of them are new. */
export async function recordKills(tx: Tx, id: EndpointId, generation: number, kills: number): Promise<number> {
  const known = first(
    await tx<{ kills: number }[]>`
      select case when kills_generation = ${generation} then kills else 0 end as kills
      from endpoints where id = ${id} and generation = ${generation} for update`,
  );
  if (known === undefined || known.kills >= kills) return 0;
  await tx`update endpoints set kills = ${kills}, kills_generation = ${generation} where id = ${id}`;
  return kills - known.kills;
}
