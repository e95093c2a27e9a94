/** What goes on: whether anything does, in one statement for all loops that would otherwise ask, and which computes. */
import { one, type Sql } from './client.ts';
import type { EndpointRow } from './endpoints.ts';
import { unfinished } from './operations.ts';

/**
 * True while a compute or a look is awake, an operation is unfinished, or the time of something has come. What else a
 * loop finds to do is made by an operation, and begins with one.
 */
export async function isAnythingGoingOn(sql: Sql, now: Date): Promise<boolean> {
  const { found } = one(
    await sql<{ found: boolean }[]>`
      select exists (select from endpoints where current_state = 'active')
        or exists (select from operations where status in ${unfinished(sql)})
        or exists (select from endpoints where disk_guard is not null)
        or exists (select from looks)
        or exists (select from projects where recoverable_until <= ${now})
        or exists (select from branches where recoverable_until <= ${now})
        or exists (select from branches where expires_at <= ${now} and deleting_at is null)
        or exists (select from snapshots where expires_at <= ${now} and deleting_at is null)
        or exists (select from snapshot_schedules where next_at <= ${now})
        or exists (select from webhook_deliveries d join webhooks w on w.id = d.webhook_id
          where d.status = 'pending' and d.due_at <= ${now} and w.is_enabled)
        or exists (select from auth_leftovers where retry_at <= now())
        or exists (select from auth_integrations where status = 'active' and (
          transfer_status = 'initiated' and owned_by = 'neon'
          or provider_url is not null and poll_at <= now() and coalesce(follow_until, now()) <= now()))
        as found`,
  );
  return found;
}

/**
 * Computes that are awake, and all on which something is still to be done: it may be a start, or the removal of a
 * project whose computes still run.
 */
export async function selectRestlessEndpoints(sql: Sql): Promise<Pick<EndpointRow, 'id' | 'projectId'>[]> {
  // Two statements in one: a choice between their conditions would be made for every row that there is.
  return sql<Pick<EndpointRow, 'id' | 'projectId'>[]>`
    select e.id, e.project_id from endpoints e join projects p on p.id = e.project_id
    where e.current_state = 'active' and e.deleting_at is null and p.deleting_at is null
    union
    select e.id, e.project_id from operations o join endpoints e on e.project_id = o.project_id
    where o.status in ${unfinished(sql)} and (o.endpoint_id = e.id or e.current_state = 'active')`;
}
