/** Rows of `endpoint_samples`: what computes used, thinned with age. */
import type { EndpointId } from '../lib/ids.ts';
import type { Sql } from './client.ts';

export interface SampleRow {
  readonly endpointId: EndpointId;
  readonly at: Date;
  /** Seconds: 15 are kept for an hour, 60 for a day, 600 for a week. */
  readonly resolution: number;
  readonly generation: number;
  readonly cu: number | null;
  readonly cpuSeconds: number;
  readonly throttledPeriods: number;
  readonly memoryBytes: number;
  readonly cacheBytes: number;
  readonly workingSetBytes: number;
  readonly connectionsActive: number | null;
  readonly connectionsIdle: number | null;
  readonly connectionsMax: number | null;
  readonly transactions: number | null;
  readonly blocksHit: number | null;
  readonly blocksRead: number | null;
  readonly replicationLagBytes: number | null;
  readonly databaseBytes: number | null;
}

const rowsPerInsert = 1_000;

/** One statement for all computes. Those that were deleted meanwhile are left out. */
export async function insertSamples(sql: Sql, rows: readonly SampleRow[]): Promise<void> {
  for (let from = 0; from < rows.length; from += rowsPerInsert) {
    const batch = JSON.stringify(rows.slice(from, from + rowsPerInsert));
    await sql`
      insert into endpoint_samples
      select r."endpointId", r.at, r.resolution, r.generation, r.cu, r."cpuSeconds", r."throttledPeriods",
        r."memoryBytes", r."cacheBytes", r."workingSetBytes", r."connectionsActive", r."connectionsIdle",
        r."connectionsMax", r.transactions, r."blocksHit", r."blocksRead", r."replicationLagBytes", r."databaseBytes"
      from jsonb_to_recordset(${batch}::text::jsonb) as r(
        "endpointId" text, at timestamptz, resolution smallint, generation int, cu float8, "cpuSeconds" float8,
        "throttledPeriods" bigint, "memoryBytes" bigint, "cacheBytes" bigint, "workingSetBytes" bigint,
        "connectionsActive" int, "connectionsIdle" int, "connectionsMax" int, transactions bigint, "blocksHit" bigint,
        "blocksRead" bigint, "replicationLagBytes" bigint, "databaseBytes" bigint)
      where exists (select 1 from endpoints e where e.id = r."endpointId")
      on conflict do nothing`;
  }
}

export async function selectSamples(
  sql: Sql,
  id: EndpointId,
  period: { readonly from: Date; readonly to: Date },
): Promise<SampleRow[]> {
  return sql<SampleRow[]>`
    select * from endpoint_samples
    where endpoint_id = ${id} and at >= ${period.from} and at < ${period.to} order by at`;
}

/** The newest of each compute that runs, and the one of a minute before, for rates. */
export async function selectLatestSamples(sql: Sql): Promise<(SampleRow & { readonly projectId: string })[]> {
  return sql`
    select s.*, e.project_id from endpoints e join projects p on p.id = e.project_id and p.deleting_at is null
    join lateral (
      select * from endpoint_samples s where s.endpoint_id = e.id and s.resolution >= 60 order by at desc limit 1
    ) s on s.generation = e.generation
    where e.current_state = 'active' and e.deleting_at is null`;
}

/** Returns how many rows were deleted. */
export async function thinSamples(sql: Sql, now: Date): Promise<number> {
  const deleted = await sql`
    delete from endpoint_samples where
      (resolution = 15 and at < ${now}::timestamptz - interval '1 hour')
      or (resolution = 60 and at < ${now}::timestamptz - interval '1 day')
      or (resolution = 600 and at < ${now}::timestamptz - interval '7 days')`;
  const steps = await sql`delete from endpoint_size_changes where at < ${now}::timestamptz - interval '7 days'`;
  return deleted.count + steps.count;
}
