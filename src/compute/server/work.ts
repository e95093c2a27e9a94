/**
 * What a server does and holds, read from the server itself: what keeps it awake, how large its databases are, who
 * writes.
 */

import type { ServerWork, WorkObservation } from '../interface/driver.ts';
import { adminRole, replicationRole } from '../interface/own-logins.ts';
import type { Session } from './admin-session.ts';
import { isSessionOfPlatform } from './platform-roles.ts';
import { usersWriterPattern } from './users-sync.ts';

/** Processes that always run; a server that has only these is idle. */
const housekeeping = [
  'checkpointer',
  'background writer',
  'walwriter',
  'autovacuum launcher',
  'logical replication launcher',
  'archiver',
  'startup',
  'walreceiver',
  'walsummarizer',
  'io worker',
  'slotsync worker',
];

interface Activity {
  readonly backendType: string;
  readonly state: string | null;
  readonly pid: number;
  readonly role: string | null;
  readonly applicationName: string | null;
  readonly slot: string | null;
  readonly subscription: string | null;
  readonly since: Date;
}

/**
 * The oldest piece of work, and when the last finished one ended. Sessions of Catnap, of standbys and of whatever runs
 * the server do not count.
 */
export async function readWork(sql: Session): Promise<WorkObservation> {
  const [found] = await sql<Activity[]>`
    SELECT backend_type AS "backendType", state, pid, usename AS role, nullif(application_name, '') AS "applicationName",
           (SELECT slot_name FROM pg_replication_slots WHERE active_pid = a.pid LIMIT 1) AS slot,
           (SELECT subname FROM pg_stat_subscription s WHERE s.pid = a.pid LIMIT 1) AS subscription,
           coalesce(xact_start, query_start, backend_start) AS since
    FROM pg_stat_activity a
    WHERE ${clientsOwn(sql)} AND NOT ${atRest(sql)}
    ORDER BY since LIMIT 1`;
  // An open session shows when it was last active; the proxy reported those that were closed.
  const [ended] = await sql<{ at: Date | null }[]>`
    SELECT max(state_change) AS at FROM pg_stat_activity
    WHERE ${clientsOwn(sql)} AND backend_type = 'client backend' AND state = 'idle'`;
  return { work: found === undefined ? null : asWork(found), lastWorkAt: ended?.at ?? null };
}

/** Neither Catnap's sessions nor what every server always runs. */
export const clientsOwn = (sql: Session) => sql`
  (backend_type NOT IN ${sql(housekeeping)} AND coalesce(usename NOT IN ${sql([adminRole, replicationRole])}, true)
   AND coalesce(usename !~ ${usersWriterPattern}, true) AND NOT ${sql.unsafe(isSessionOfPlatform)})`;

/**
 * An owner may have turned the tracking of states off: then a session that waits for its client, with no transaction,
 * is idle. A background worker without a state is idle while it sleeps in its main loop. Replication in both directions
 * is always active: asleep, the server would get none of its publishers' changes.
 */
const atRest = (sql: Session) => sql`
  (backend_type <> 'walsender' AND backend_type !~ '^logical replication .*worker$' AND coalesce(
    state = 'idle'
    OR state = 'disabled' AND wait_event = 'ClientRead' AND backend_xid IS NULL AND backend_xmin IS NULL
    OR state IS NULL AND backend_type <> 'client backend' AND wait_event_type IN ('Activity', 'Extension'), false))`;

function asWork(activity: Activity): ServerWork {
  const { backendType, state, pid, role, applicationName, slot, subscription, since } = activity;
  const facts = { pid, role, applicationName, slot, since };
  const whose = `of ${role} (pid ${pid})`;
  if (backendType === 'walsender') {
    const through = slot === null ? '' : ` through the slot ${slot}`;
    return { ...facts, kind: 'replication', description: `a replication session ${whose}${through}` };
  }
  if (subscription !== null) {
    return { ...facts, kind: 'replication', description: `the subscription ${subscription} (pid ${pid})` };
  }
  if (backendType !== 'client backend') {
    return { ...facts, kind: 'background_worker', description: `${backendType} (pid ${pid})` };
  }
  return state?.startsWith('idle in transaction')
    ? { ...facts, kind: 'transaction', description: `an open transaction ${whose}` }
    : { ...facts, kind: 'query', description: `a query ${whose}` };
}

/** Postgres adds up the sizes of files; no table is opened. A database dropped meanwhile counts as empty. */
export async function readSize(sql: Session): Promise<number> {
  const [found] = await sql<{ bytes: number }[]>`
    SELECT coalesce(sum(pg_database_size(oid)), 0)::float8 AS bytes FROM pg_database`;
  return found?.bytes ?? 0;
}

/** One statement that only removes. */
const removal = '^\\s*(delete|truncate|drop|vacuum)\\M[^;]*;?\\s*$';

/** A session that has written has a transaction id; its last statement shows what it does there. */
export async function endWriters(sql: Session): Promise<number> {
  const ended = await sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE ${clientsOwn(sql)} AND backend_type = 'client backend' AND backend_xid IS NOT NULL AND query !~* ${removal}`;
  return ended.length;
}
