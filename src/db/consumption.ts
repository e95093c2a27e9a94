/**
 * What computes and branches have consumed, by branch and hour, and the counters of the month that branches and
 * projects show; what they store is in `storage.ts`. Each measurement covers the time since the last one, so that it
 * may be late, or skipped.
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
  /** How much of the storage a row of `stored_spans` has: that is not added to the hour. */
  readonly spanned: number;
}

export type Part = Pick<Consumed, 'projectId' | 'branchId'> & Partial<Consumed>;

/**
 * Projects with a compute that is awake, or has sent something since it was metered, and those with a branch that has
 * changed its size. Each part has an index of its own, so that what sleeps is not looked at.
 */
export async function selectProjectsToMeter(sql: Sql): Promise<ProjectId[]> {
  const rows = await sql<{ id: ProjectId }[]>`
    select project_id as id from endpoints where current_state = 'active' and started_at is not null
    union
    select project_id from transfers
    union
    select b.project_id from branches b join projects p on p.id = b.project_id and p.deleting_at is null
    where b.is_resized and b.deleting_at is null
    order by 1`;
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
 * limits, at their smallest size. The caller holds their projects, as with everything that meters. One compute is
 * waited for, and counts although it was deleted: nobody looks at it again once it sleeps.
 */
export async function meterTime(tx: Tx, now: Date, of: readonly ProjectId[] | EndpointId): Promise<Part[]> {
  const isOne = typeof of === 'string';
  const chosen = isOne ? tx`id = ${of}` : tx`project_id = any(${[...of]}) and deleting_at is null`;
  return tx<Part[]>`
    with span as (
      select id, greatest(metered_until, started_at) as since,
        case when current_state = 'active' then ${now}::timestamptz else suspended_at end as until
      from endpoints
      where started_at is not null and ${chosen} and (
        current_state = 'active' or suspended_at > started_at and suspended_at > coalesce(metered_until, started_at))
      for update ${isOne ? tx`` : tx`skip locked`}
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

const nothing = { active: 0, compute: 0, cpu: 0, written: 0, transfer: 0, storage: 0, spanned: 0 };
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
      active float8, compute float8, cpu float8, written float8, transfer float8, storage float8, spanned float8)`;
  const period = periodOf(now);
  // Sent together, which is one round trip.
  await Promise.all([
    tx`
      insert into consumption_hours as c (project_id, branch_id, hour, is_root, active_seconds, compute_unit_seconds,
        cpu_seconds, written_bytes, transfer_bytes, storage_byte_seconds, logical_bytes)
      select s."projectId", s."branchId", date_trunc('hour', ${now}::timestamptz, 'UTC'), b.parent_id is null, s.active,
        s.compute, s.cpu, s.written, s.transfer, (s.storage - s.spanned) * 3600, coalesce(b.logical_size, 0)
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
