/**
 * The source's half of following its changes: whether it permits that, the publication and the slot that a copy has
 * there, and moments with the position in the log that belongs to them.
 */
import { createHash } from 'node:crypto';
import { CopyFailure, wordsOf } from './failure.ts';
import { openPlace, type Place, type Sql } from './session.ts';
import { openSnapshot, type Snapshot } from './snapshot.ts';

/** What stands against it, as the end of a sentence; null if nothing does. */
export async function whyNotReplicated(source: Sql): Promise<string | null> {
  const [is] = await source<{ level: string; may: boolean; free: number; makes: boolean }[]>`
    SELECT current_setting('wal_level') AS level,
           (SELECT rolreplication OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) AS may,
           current_setting('max_replication_slots')::int -
             (SELECT count(*)::int FROM pg_catalog.pg_replication_slots) AS free,
           pg_catalog.has_database_privilege(current_database(), 'CREATE') AS makes`;
  if (is?.level !== 'logical') return `its wal_level is ${is?.level}`;
  if (!is.may) return 'the role has no REPLICATION attribute';
  if (!is.makes) return 'the role has no CREATE right in the database, and cannot make a publication';
  if (is.free < 2) return `it has ${is.free} free replication slots, and two are needed`;
  return whyTablesNotReplicated(source);
}

/** Only what stands against it in the database itself. */
export async function whyTablesNotReplicated(source: Sql): Promise<string | null> {
  const [bad] = await source<{ name: string; why: string }[]>`
    SELECT * FROM (
      SELECT c.oid::regclass::text AS name, CASE
          WHEN NOT pg_catalog.pg_has_role(c.relowner, 'USAGE') THEN 'belongs to another role'
          WHEN c.relreplident NOT IN ('d', 'i') THEN 'has a replica identity that is no key'
          WHEN c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i
             WHERE i.indrelid = c.oid AND i.indisprimary) THEN 'has no primary key'
        END AS why
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
       ORDER BY c.oid) t
     WHERE why IS NOT NULL LIMIT 1`;
  return bad === undefined ? null : `table ${bad.name} ${bad.why}`;
}

/** The same for the same two databases, so that what an earlier try has left can be found. */
export function slotNameOf(sourceId: string, target: Place): string {
  const { host, port, database, options = '' } = target;
  const hash = createHash('sha256').update(`${sourceId} ${host}:${port}/${database} ${options}`).digest('hex');
  return `catnap_import_${hash.slice(0, 16)}`;
}

/** Ends what the copy has in the source; fine if nothing is there. */
export async function dropReplication(source: Sql, name: string): Promise<void> {
  await source`SELECT pg_catalog.pg_drop_replication_slot(slot_name)
                 FROM pg_catalog.pg_replication_slots WHERE slot_name = ${name}`;
  await source.unsafe(`DROP PUBLICATION IF EXISTS ${name}`);
}

/** The publication, the slot, and the moment at which the slot begins. */
export async function beginReplication(source: Sql, place: Place, name: string): Promise<Snapshot> {
  await dropReplication(source, name);
  const tables = await source<{ name: string }[]>`
    SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`;
  const list = tables.length === 0 ? '' : `FOR TABLE ONLY ${tables.map((table) => table.name).join(', ONLY ')}`;
  await source.unsafe(`CREATE PUBLICATION ${name} ${list}`);
  return momentOf(source, place, `CREATE_REPLICATION_SLOT ${name} LOGICAL pgoutput EXPORT_SNAPSHOT`);
}

/** A later moment, for tables that an earlier run did not get to. */
export function laterMoment(source: Sql, place: Place, name: string): Promise<Snapshot> {
  const slot = `${name}_now`;
  return momentOf(source, place, `CREATE_REPLICATION_SLOT ${slot} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT`);
}

/** Transactions that commit at or behind `lsn` are not in the snapshot, all others are. */
async function momentOf(source: Sql, place: Place, command: string): Promise<Snapshot> {
  const walsender = openPlace(place, { replication: true });
  try {
    const [slot] = await walsender.unsafe(command).simple();
    const snapshot = await openSnapshot(source, place, String(slot?.snapshot_name));
    return { ...snapshot, lsn: String(slot?.consistent_point) };
  } catch (error) {
    throw new CopyFailure(`the source gives no replication slot: ${wordsOf(error)}`);
  } finally {
    // The snapshot is held by its own session now.
    await walsender.end({ timeout: 5 });
  }
}
