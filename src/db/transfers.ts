/** Bytes that proxies have sent to clients, from their reports until they are metered. */
import type { ProjectId } from '../lib/ids.ts';
import type { TransferReport } from '../lib/model.ts';
import type { Sql, Tx } from './client.ts';
import type { Part } from './consumption.ts';

/** Does nothing for a report that was recorded before. What is left of an endpoint that no longer exists is lost. */
export async function insertTransfers(sql: Sql, { reporter, sequence, bytes }: TransferReport): Promise<void> {
  await sql`
    with fresh as (
      insert into transfer_reports as r (reporter, sequence) values (${reporter}, ${sequence})
      on conflict (reporter) do update set sequence = excluded.sequence, reported_at = now()
        where r.sequence < excluded.sequence
      returning reporter)
    insert into transfers (project_id, branch_id, bytes)
    select e.project_id, e.branch_id, t.bytes
    from fresh, unnest(${[...bytes.keys()]}::text[], ${[...bytes.values()]}::bigint[]) as t(endpoint_id, bytes)
    join endpoints e on e.id = t.endpoint_id`;
}

/** Takes what was reported for some projects. The caller holds them, and adds it to their counters. */
export async function meterTransfers(tx: Tx, projectIds: readonly ProjectId[]): Promise<Part[]> {
  return tx<Part[]>`
    with taken as (
      delete from transfers where project_id = any(${[...projectIds]}) returning project_id, branch_id, bytes)
    select project_id, branch_id, sum(bytes)::float8 as transfer from taken group by 1, 2`;
}

/** What belongs to no project any more, and the numbers of proxies that have been silent for a day. */
export async function deleteOldTransfers(sql: Sql): Promise<number> {
  const orphans = await sql`
    delete from transfers t where not exists (select 1 from projects p where p.id = t.project_id)`;
  const silent = await sql`delete from transfer_reports where reported_at < now() - interval '1 day'`;
  return orphans.count + silent.count;
}
