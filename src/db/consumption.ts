/**
 * What computes and branches have consumed, by branch and hour, and the counters of the month that branches and
 * projects show. Each measurement covers the time since the last one, so that it may be late, or skipped.
 */
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import type { Sql, Tx } from './client.ts';

/** Counters of one month, in the shape that `usage` of branches and projects has. */
export interface Usage {
  readonly period?: string;
  readonly active?: number;
  readonly compute?: number;
  readonly cpu?: number;
  readonly written?: number;
  readonly transfer?: number;
  readonly storage?: number;
}

export interface Consumed {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly active: number;
  /** Size times seconds. */
  readonly compute: number;
  readonly cpu: number;
  readonly written: number;
  /** Bytes sent to clients. */
  readonly transfer: number;
  /** Bytes times hours. */
  readonly storage: number;
}

export type Part = Pick<Consumed, 'projectId' | 'branchId'> & Partial<Consumed>;

/**
 * Projects with a compute that was awake, or sent something, since it was metered, or all. What a deleted project
 * stores is not counted.
 */
export async function selectProjectsToMeter(sql: Sql, isForAll: boolean): Promise<ProjectId[]> {
  const rows = await sql<{ id: ProjectId }[]>`
    select p.id from projects p where ${isForAll} and p.deleting_at is null or exists (
      select 1 from endpoints e where e.project_id = p.id and e.started_at is not null and (
        e.current_state = 'active' or e.suspended_at > coalesce(e.metered_until, e.started_at)))
      or exists (select 1 from transfers t where t.project_id = p.id)
    order by p.id`;
  return rows.map(({ id }) => id);
}

/**
 * Locks those of the projects that no other transaction holds. Counters of a project are written after those of its
 * computes and branches, and commands lock the project first: metering must do so too, or the two deadlock. Projects
 * that are left out are metered next time.
 */
export async function lockFreeProjects(tx: Tx, ids: readonly ProjectId[]): Promise<ProjectId[]> {
  const rows = await tx<{ id: ProjectId }[]>`
    select id from projects where id = any(${[...ids]}) order by id for no key update skip locked`;
  return rows.map(({ id }) => id);
}

/**
 * Time that computes of some projects, or one compute, were awake, up to now or to when they fell asleep; without
 * limits, at their smallest size. The caller holds their projects, as with everything that meters.
 */
export async function meterTime(tx: Tx, now: Date, of: readonly ProjectId[] | EndpointId): Promise<Part[]> {
  const chosen = typeof of === 'string' ? tx`id = ${of}` : tx`project_id = any(${[...of]})`;
  return tx<Part[]>`
    with span as (
      select id, greatest(metered_until, started_at) as since,
        case when current_state = 'active' then ${now}::timestamptz else suspended_at end as until
      from endpoints
      where started_at is not null and deleting_at is null and ${chosen} and (
        current_state = 'active' or suspended_at > started_at and suspended_at > coalesce(metered_until, started_at))
      for update skip locked
    )
    update endpoints e set metered_until = span.until from span
    where e.id = span.id and span.until > span.since
    returning e.project_id, e.branch_id, extract(epoch from span.until - span.since)::float8 as active,
      (extract(epoch from span.until - span.since) * coalesce(e.current_cu, e.min_cu))::float8 as compute`;
}

/** A sum that went down was reset by another start; at the end of a start it is only older than one in between. */
export async function meterCpu(tx: Tx, sums: ReadonlyMap<EndpointId, number>, isEnd = false): Promise<Part[]> {
  return tx<Part[]>`
    with seen as (
      select e.id, e.metered_cpu_seconds as before, s.cpu as after
      from unnest(${[...sums.keys()]}::text[], ${[...sums.values()]}::float8[]) as s(id, cpu)
      join endpoints e on e.id = s.id where e.metered_cpu_seconds <> s.cpu for update of e skip locked
    )
    update endpoints e set metered_cpu_seconds = seen.after from seen where e.id = seen.id
    returning e.project_id, e.branch_id,
      case when seen.after >= seen.before then seen.after - seen.before when ${isEnd} then 0 else seen.after end as cpu`;
}

/** Before a compute changes its size: its time until now was at the current size. */
export async function meterStep(tx: Tx, id: EndpointId, now: Date): Promise<void> {
  await addConsumption(tx, await meterTime(tx, now, id), now);
}

/** The last sums of a compute, as far as they could be read. */
export interface LastSums {
  readonly cpuSeconds: number | null;
  /** Of the branch that it wrote to. */
  readonly wal: readonly [BranchId, Written] | null;
}

/** Before a compute is recorded as asleep. */
export async function meterEnd(tx: Tx, id: EndpointId, now: Date, { cpuSeconds, wal }: LastSums): Promise<void> {
  const parts = await Promise.all([
    meterTime(tx, now, id),
    cpuSeconds === null ? [] : meterCpu(tx, new Map([[id, cpuSeconds]]), true),
    wal === null ? [] : meterWritten(tx, new Map([wal])),
  ]);
  await Promise.all([
    addConsumption(tx, parts.flat(), now),
    tx`update endpoints set metered_cpu_seconds = 0 where id = ${id}`,
  ]);
}

/** What a server wrote to its WAL, by its own count, and where the WAL ends. */
export interface Written {
  readonly bytes: number;
  readonly position: number;
}

/**
 * A sum that went down was reset. At the first measurement it may include what the copied server wrote, so the distance
 * from the point of the copy bounds it; that alone is not enough, because the WAL of a copy goes on in the next
 * segment. A branch that was emptied after the copy wrote WAL for that itself: its first measurement only notes the
 * position. A measurement of an earlier position came late, after one that counted all of it.
 */
export async function meterWritten(tx: Tx, written: ReadonlyMap<BranchId, Written>): Promise<Part[]> {
  const logs = [...written.values()];
  return tx<Part[]>`
    with seen as (
      select b.id, s.bytes, s.position, case
        when s.bytes >= b.metered_wal_bytes then s.bytes - b.metered_wal_bytes
        when b.metered_wal_bytes is not null then s.bytes
        else least(s.bytes, greatest(0, s.position - coalesce(b.metered_wal,
          case when b.init_source <> 'schema-only' then (b.receipt ->> 'lsn')::pg_lsn - '0/0'::pg_lsn end, s.position)))
        end as written
      from unnest(${[...written.keys()]}::text[], ${logs.map(({ bytes }) => bytes)}::float8[],
        ${logs.map(({ position }) => position)}::float8[]) as s(id, bytes, position)
      join branches b on b.id = s.id where s.position >= coalesce(b.metered_wal, 0) for update of b skip locked
    )
    update branches b set metered_wal = seen.position, metered_wal_bytes = seen.bytes from seen where b.id = seen.id
    returning b.project_id, b.id as branch_id, seen.written::float8`;
}

/** Moves the metered position with a branch's data; the branch that had the data starts without one. */
export async function moveMeteredWal(tx: Tx, from: BranchId, to: BranchId | null): Promise<void> {
  if (to !== null) {
    await tx`
      update branches b set metered_wal = f.metered_wal, metered_wal_bytes = f.metered_wal_bytes
      from branches f where f.id = ${from} and b.id = ${to}`;
  }
  await tx`update branches set metered_wal = null, metered_wal_bytes = null where id = ${from}`;
}

export async function meterStorage(tx: Tx, now: Date, projectIds: readonly ProjectId[]): Promise<Part[]> {
  return tx<Part[]>`
    with seen as (
      select id, coalesce(metered_until, ${now}::timestamptz) as since from branches
      where logical_size is not null and deleting_at is null and project_id = any(${[...projectIds]})
        and exists (select 1 from projects p where p.id = project_id and p.deleting_at is null)
      for update skip locked
    )
    update branches b set metered_until = ${now} from seen where b.id = seen.id
    returning b.project_id, b.id as branch_id,
      (b.logical_size * extract(epoch from ${now}::timestamptz - seen.since) / 3600)::float8 as storage`;
}

const nothing = { active: 0, compute: 0, cpu: 0, written: 0, transfer: 0, storage: 0 };
const counters = Object.keys(nothing) as (keyof typeof nothing)[];

export async function addConsumption(tx: Tx, parts: readonly Part[], now: Date): Promise<void> {
  const sums = new Map<string, Consumed>();
  for (const part of parts) {
    const { projectId, branchId } = part;
    const sum = sums.get(branchId) ?? { projectId, branchId, ...nothing };
    const added = counters.map((key) => [key, sum[key] + (part[key] ?? 0)]);
    sums.set(branchId, { ...sum, ...Object.fromEntries(added) });
  }
  if (sums.size === 0) return;
  const rows = tx`
    jsonb_to_recordset(${JSON.stringify([...sums.values()])}::text::jsonb) as s("projectId" text, "branchId" text,
      active float8, compute float8, cpu float8, written float8, transfer float8, storage float8)`;
  const period = periodOf(now);
  // Sent together, which is one round trip.
  await Promise.all([
    tx`
      insert into consumption_hours as c (project_id, branch_id, hour, is_root, active_seconds, compute_unit_seconds,
        cpu_seconds, written_bytes, transfer_bytes, storage_byte_seconds, logical_bytes)
      select s."projectId", s."branchId", date_trunc('hour', ${now}::timestamptz, 'UTC'), b.parent_id is null, s.active,
        s.compute, s.cpu, s.written, s.transfer, s.storage * 3600, coalesce(b.logical_size, 0)
      from ${rows} join branches b on b.id = s."branchId"
      on conflict (branch_id, hour) do update set
        active_seconds = c.active_seconds + excluded.active_seconds,
        compute_unit_seconds = c.compute_unit_seconds + excluded.compute_unit_seconds,
        cpu_seconds = c.cpu_seconds + excluded.cpu_seconds,
        written_bytes = c.written_bytes + excluded.written_bytes,
        transfer_bytes = c.transfer_bytes + excluded.transfer_bytes,
        storage_byte_seconds = c.storage_byte_seconds + excluded.storage_byte_seconds,
        logical_bytes = greatest(c.logical_bytes, excluded.logical_bytes)`,
    tx`update branches b set usage = ${added(tx, 'b', period)} from ${rows} where b.id = s."branchId"`,
    tx`
      update projects p set usage = ${added(tx, 'p', period)}
      from (
        select "projectId", sum(active) as active, sum(compute) as compute, sum(cpu) as cpu, sum(written) as written,
          sum(transfer) as transfer, sum(storage) as storage from ${rows} group by 1
      ) s where p.id = s."projectId"`,
  ]);
}

/** A new month starts at zero. */
function added(tx: Tx, table: 'b' | 'p', period: string) {
  const usage = tx(`${table}.usage`);
  const plus = (key: string) => tx`
    ${key}::text, (case when ${usage} ->> 'period' = ${period} then coalesce((${usage} ->> ${key})::float8, 0) else 0 end)
      + ${tx(`s.${key}`)}`;
  return tx`jsonb_build_object('period', ${period}::text, ${plus('active')}, ${plus('compute')}, ${plus('cpu')},
    ${plus('written')}, ${plus('transfer')}, ${plus('storage')})`;
}

export const periodOf = (now: Date) => now.toISOString().slice(0, 7);

/** The counters if they are of the current month; those of an earlier one count for nothing any more. */
export const usageAt = (usage: Usage, now: Date): Usage => (usage.period === periodOf(now) ? usage : {});

/** The current month, UTC: what the counters cover. */
export function periodBounds(now: Date): { readonly start: Date; readonly end: Date } {
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return { start: new Date(Date.UTC(year, month, 1)), end: new Date(Date.UTC(year, month + 1, 1)) };
}

export interface ConsumptionRow {
  readonly projectId: ProjectId;
  /** Null in a sum over all branches of a project. */
  readonly branchId: BranchId | null;
  readonly start: Date;
  readonly activeSeconds: number;
  readonly computeUnitSeconds: number;
  readonly cpuSeconds: number;
  readonly writtenBytes: number;
  readonly transferBytes: number;
  readonly rootByteHours: number;
  readonly childByteHours: number;
  readonly logicalBytes: number;
}

/** Oldest first. */
export async function selectConsumption(
  sql: Sql,
  query: {
    readonly projectIds: readonly string[];
    readonly branchIds: readonly string[] | null;
    readonly from: Date;
    readonly to: Date;
    readonly unit: 'hour' | 'day' | 'month';
    readonly by: 'project' | 'branch';
  },
): Promise<ConsumptionRow[]> {
  const branch = query.by === 'branch' ? sql`branch_id` : sql`null::text`;
  return sql<ConsumptionRow[]>`
    select project_id, ${branch} as branch_id, date_trunc(${query.unit}, hour, 'UTC') as start,
      sum(active_seconds) as active_seconds, sum(compute_unit_seconds) as compute_unit_seconds,
      sum(cpu_seconds) as cpu_seconds, sum(written_bytes) as written_bytes,
      sum(transfer_bytes) as transfer_bytes,
      coalesce(sum(storage_byte_seconds) filter (where is_root), 0) / 3600 as root_byte_hours,
      coalesce(sum(storage_byte_seconds) filter (where not is_root), 0) / 3600 as child_byte_hours,
      max(logical_bytes)::float8 as logical_bytes
    from consumption_hours
    where project_id = any(${[...query.projectIds]}) and hour >= ${query.from} and hour < ${query.to}
      and (${query.branchIds === null} or branch_id = any(${[...(query.branchIds ?? [])]}))
    group by 1, 2, 3 order by 1, 2, 3`;
}
