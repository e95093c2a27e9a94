/**
 * Logical replication inside a tenant's server: who may take part in it, its slots, and the subscriptions that a copy
 * inherits. Roles, slots and subscriptions are shared by all databases, so Catnap's own database is enough.
 */

import type { ReplicationSlot } from '../../lib/model.ts';
import { replicationRole } from '../interface/own-logins.ts';
import type { Session } from './admin-session.ts';
import { quoteIdentifier } from './sql-text.ts';

/** Exists since Postgres 16; before that only superusers could subscribe. */
const subscribers = 'pg_create_subscription';
/** From this version on, a connection string can name a file that libpq appends its TLS secrets to. */
const keyLogVersion = 180_000;

/**
 * For roles that were made through the API, and not for those that an owner made by SQL, since a role that replicates
 * can read every table. Postgres makes whoever creates a role its administrator, except for a superuser such as
 * Catnap's own login. `hasOwnUid` means that the server can write to no files but its project's: where it runs as
 * Catnap itself, nobody subscribes on a version that could damage Catnap's files by it.
 */
export async function grantReplication(sql: Session, hasOwnUid: boolean): Promise<void> {
  const [server] = await sql<{ version: number }[]>`SELECT current_setting('server_version_num')::int AS version`;
  const maySubscribe = hasOwnUid || (server?.version ?? 0) < keyLogVersion;
  const lacking = await sql<{ name: string; replicates: boolean; mayJoin: boolean }[]>`
    SELECT rolname AS name, rolreplication AS replicates, s.oid IS NOT NULL AND m.member IS NULL AS "mayJoin"
    FROM pg_roles r LEFT JOIN (SELECT oid FROM pg_roles WHERE rolname = ${subscribers}) s ON true
      LEFT JOIN pg_auth_members m ON m.roleid = s.oid AND m.member = r.oid
    WHERE rolcreatedb AND rolcreaterole = (current_setting('server_version_num')::int >= 160000) AND NOT rolsuper
      AND NOT EXISTS (SELECT FROM pg_auth_members a WHERE a.roleid = r.oid AND a.admin_option)
      AND (NOT rolreplication OR s.oid IS NOT NULL AND m.member IS NULL)`;
  for (const { name, replicates, mayJoin } of lacking) {
    const role = quoteIdentifier(name);
    if (!replicates) await sql.unsafe(`ALTER ROLE ${role} REPLICATION`);
    if (mayJoin && maySubscribe) await sql.unsafe(`GRANT ${subscribers} TO ${role}`);
  }
}

/** Temporary slots end with their session, and are nobody else's concern. */
export async function readSlots(sql: Session): Promise<ReplicationSlot[]> {
  const slots = await sql<ReplicationSlot[]>`
    SELECT slot_name AS name, plugin, database, active, coalesce(wal_status, 'lost') AS "walStatus",
      CASE WHEN wal_status <> 'lost'
        THEN greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::float8 END AS "retainedBytes"
    FROM pg_replication_slots WHERE slot_type = 'logical' AND NOT temporary ORDER BY slot_name`;
  return slots.map((slot) => ({ ...slot }));
}

/** Where the log ends; null while clients replicate, whose sessions have to be ended first, and on a standby. */
export async function readQuietPosition(sql: Session): Promise<string | null> {
  const [row] = await sql<{ position: string | null }[]>`
    SELECT CASE WHEN NOT pg_is_in_recovery() AND NOT EXISTS (
      SELECT FROM pg_stat_activity WHERE backend_type = 'walsender' AND usename <> ${replicationRole}
    ) THEN pg_current_wal_insert_lsn()::text END AS position`;
  return row?.position ?? null;
}

/** A server that shuts down waits until its subscribers have confirmed everything, and a silent one takes a minute. */
export async function endClientsReplication(sql: Session): Promise<void> {
  await sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE backend_type = 'walsender' AND usename <> ${replicationRole}`;
}

/**
 * For a copy. A subscription in it would take changes away from the one in its source, and dropping it would drop the
 * slot of that one. ALTER SUBSCRIPTION works only inside its own database, which a superuser's session must not enter.
 */
export async function detachSubscriptions(sql: Session): Promise<void> {
  await sql`
    UPDATE pg_subscription SET subenabled = false, subslotname = NULL WHERE subenabled OR subslotname IS NOT NULL`;
}
