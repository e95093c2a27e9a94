/** Whether anything goes on, in one statement for all loops that would otherwise ask for themselves all the time. */
import { one, type Sql } from './client.ts';
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
        or exists (select from auth_leftovers where retry_at <= now())
        or exists (select from auth_integrations where status = 'active' and (
          transfer_status = 'initiated' and owned_by = 'neon'
          or provider_url is not null and poll_at <= now() and coalesce(follow_until, now()) <= now()))
        as found`,
  );
  return found;
}
