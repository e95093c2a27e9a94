/** Work that one of several workers does at a time, for as long as it says so again and again. */
import type { Sql } from './client.ts';

/** Announces that a duty was given up. */
export const dutiesChannel = 'catnap_duties';

/** Takes a duty that nobody has, or keeps one's own; false while another worker has it. */
export async function takeDuty(sql: Sql, name: string, workerId: string, ms: number): Promise<boolean> {
  const rows = await sql`
    insert into duties as d (name, worker_id, held_until) values (${name}, ${workerId}, now() + ${ms} * interval '1 ms')
    on conflict (name) do update set worker_id = excluded.worker_id, held_until = excluded.held_until
      where d.worker_id = excluded.worker_id or d.held_until <= now()
    returning 1`;
  return rows.length > 0;
}

export async function giveUpDuty(sql: Sql, name: string, workerId: string): Promise<void> {
  await sql`
    with given_up as (delete from duties where name = ${name} and worker_id = ${workerId} returning 1)
    select pg_notify(${dutiesChannel}, '') from given_up`;
}

/** Where no worker can have one. */
export async function endDuties(sql: Sql): Promise<void> {
  await sql`delete from duties`;
}
