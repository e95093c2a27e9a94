/** What a server does and holds, read from the server itself: what keeps it awake, how large its databases are. */
import type { Session } from './admin-session.ts';
import { adminRole } from './driver.ts';

/** Processes that always run; a server that has only these is at rest. */
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

/** The oldest piece of work, in words; null when there is none. Catnap's own sessions and standbys do not count. */
export async function readWork(sql: Session): Promise<string | null> {
  const [found] = await sql<{ kind: string; state: string | null; pid: number; name: string | null }[]>`
    SELECT backend_type AS kind, state, pid, usename AS name
    FROM pg_stat_activity
    WHERE backend_type NOT IN ${sql(housekeeping)}
      AND usename IS DISTINCT FROM ${adminRole}
      AND usename IS DISTINCT FROM 'catnap_replication'
      AND (backend_type <> 'client backend' OR state <> 'idle')
    ORDER BY coalesce(xact_start, query_start, backend_start) LIMIT 1`;
  if (found === undefined) return null;
  const { kind, state, pid, name } = found;
  if (kind !== 'client backend') return `${kind} (pid ${pid})`;
  return state === 'active' ? `a query of ${name} (pid ${pid})` : `an open transaction of ${name} (pid ${pid})`;
}

/** Postgres adds up the sizes of files; no table is opened for it. One that is dropped meanwhile counts as none. */
export async function readSize(sql: Session): Promise<number> {
  const [found] = await sql<{ bytes: number }[]>`
    SELECT coalesce(sum(pg_database_size(oid)), 0)::float8 AS bytes FROM pg_database`;
  return found?.bytes ?? 0;
}
