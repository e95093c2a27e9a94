/** What a server counts about itself, read in Catnap's own session. */

import type { ServerMeasures, WrittenLog } from '../interface/measures.ts';
import { adminDatabase, adminRole } from '../interface/own-logins.ts';
import type { Session } from './admin-session.ts';
import { isSessionOfPlatform } from './platform-roles.ts';

/** Catnap's own sessions and database are left out, and the sessions of the platform. */
export async function readMeasures(sql: Session): Promise<ServerMeasures> {
  const [found] = await sql<
    (Omit<ServerMeasures, 'wal'> & { readonly bytes: number; readonly position: number | null })[]
  >`
    SELECT a.active AS "connectionsActive", a.idle AS "connectionsIdle",
      current_setting('max_connections')::int AS "connectionsMax",
      d.transactions, d.hit AS "blocksHit", d.read AS "blocksRead",
      w.wal_bytes::float8 AS bytes,
      CASE WHEN pg_is_in_recovery() THEN NULL
        ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 END AS position
    FROM pg_stat_wal w, (
      SELECT count(*) FILTER (WHERE state = 'active')::int AS active,
        count(*) FILTER (WHERE state <> 'active')::int AS idle
      FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename <> ${adminRole}
        AND NOT ${sql.unsafe(isSessionOfPlatform)}
    ) a, (
      SELECT coalesce(sum(xact_commit + xact_rollback), 0)::float8 AS transactions,
        coalesce(sum(blks_hit), 0)::float8 AS hit, coalesce(sum(blks_read), 0)::float8 AS read
      FROM pg_stat_database WHERE datname <> ${adminDatabase}
    ) d`;
  if (found === undefined) throw new Error('BUG: the statement gives one row');
  const { bytes, position, ...measures } = found;
  return { ...measures, wal: position === null ? null : { bytes, position } };
}

/** That alone, for a server that is about to stop: a suspend waits for the answer. Null in recovery. */
export async function readWrittenLog(sql: Session): Promise<WrittenLog | null> {
  const [found] = await sql<WrittenLog[]>`
    SELECT wal_bytes::float8 AS bytes, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS position
    FROM pg_stat_wal WHERE NOT pg_is_in_recovery()`;
  return found ?? null;
}
