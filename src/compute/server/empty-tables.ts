/**
 * The SQL that leaves nothing in a branch but its schema. It runs in a server that admits only Catnap's login, before
 * the branch is visible. It is the one superuser session that works on tenants' tables, so it makes sure that none of
 * their code can run: the flag that makes Postgres check for triggers is off while tables are emptied (a trigger may be
 * marked to fire even for replication), and only superusers can create event triggers. Indexes and materialized views
 * are rebuilt by Postgres under their owner's rights, with nothing in them to compute.
 */

import type { KeptFiles } from '../interface/driver.ts';
import { adminDatabase } from '../interface/own-logins.ts';
import type { Session } from './admin-session.ts';
import { quoteIdentifier } from './sql-text.ts';

type Enter = <T>(database: string, work: (sql: Session) => Promise<T>) => Promise<T>;

/** What comes with an extension is reference data, not the tenant's. Of temporary tables only names are left. */
const ofTenant = `
  c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`;

/**
 * Sequences restart, as in a schema that was dumped and restored. Statistics, large objects and the defaults that old
 * rows got without being rewritten hold values too.
 */
const emptyOne = `
DO $catnap$
DECLARE
  found record;
BEGIN
  UPDATE pg_class SET relhastriggers = false WHERE relhastriggers AND relkind IN ('r', 'p');
  FOR found IN SELECT format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND ${ofTenant}
  LOOP EXECUTE 'TRUNCATE TABLE ONLY ' || found.name; END LOOP;
  FOR found IN SELECT format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'm' AND ${ofTenant}
  LOOP EXECUTE 'REFRESH MATERIALIZED VIEW ' || found.name || ' WITH NO DATA'; END LOOP;
  PERFORM setval(c.oid, s.seqstart, false)
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${ofTenant};
  UPDATE pg_attribute SET atthasmissing = false, attmissingval = NULL
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE attrelid = c.oid AND atthasmissing AND ${ofTenant};
  PERFORM lo_unlink(oid) FROM pg_largeobject_metadata;
  TRUNCATE pg_statistic, pg_statistic_ext_data, pg_largeobject, pg_largeobject_metadata;
  UPDATE pg_class SET relhastriggers = true
    WHERE NOT relhastriggers AND relkind IN ('r', 'p') AND oid IN (SELECT tgrelid FROM pg_trigger);
END $catnap$`;

/** Changed rows remain in the file until the table is rewritten. */
const rewritten = ['pg_class', 'pg_attribute'];

export async function emptyTables(enter: Enter): Promise<void> {
  for (const database of await enter(adminDatabase, openDatabases)) {
    await enter(database, async (sql) => {
      await sql`SET allow_system_table_mods = on`;
      await sql.unsafe(emptyOne);
      for (const name of rewritten) await sql.unsafe(`VACUUM FULL pg_catalog.${name}`);
    });
  }
}

/** After this call any other file belongs to no table, and the WAL continues in a new segment. */
export async function listFiles(enter: Enter): Promise<KeptFiles> {
  const kept: { database: number; filenodes: number[] | null }[] = [];
  const all = await enter(
    adminDatabase,
    (sql) => sql<{ oid: number; name: string; isOpen: boolean }[]>`
    SELECT oid::int8::int AS oid, datname AS name, datallowconn AND datname <> ${adminDatabase} AS "isOpen"
    FROM pg_database`,
  );
  for (const { oid, name, isOpen } of all) {
    const filenodes = isOpen ? await enter(name, filenodesOf) : null;
    kept.push({ database: oid, filenodes });
  }
  await enter(adminDatabase, (sql) => sql`SELECT pg_switch_wal()`);
  return kept;
}

async function filenodesOf(sql: Session): Promise<number[]> {
  const rows = await sql<{ node: number }[]>`
    SELECT pg_relation_filenode(oid)::int8 AS node FROM pg_class WHERE pg_relation_filenode(oid) IS NOT NULL`;
  return rows.map(({ node }) => Number(node));
}

/**
 * An owner may have closed a database to all connections, which keeps Catnap out too; it is opened for good, as it
 * would be after a dump and restore. A database whose removal was interrupted is dropped.
 */
async function openDatabases(sql: Session): Promise<string[]> {
  const rows = await sql<{ name: string; isOpen: boolean; isBroken: boolean }[]>`
    SELECT datname AS name, datallowconn AS "isOpen", datconnlimit = -2 AS "isBroken" FROM pg_database
    WHERE datname NOT IN ('template0', ${adminDatabase}) ORDER BY datname`;
  for (const { name, isOpen, isBroken } of rows) {
    if (isBroken) await sql.unsafe(`DROP DATABASE ${quoteIdentifier(name)}`);
    else if (!isOpen) await sql.unsafe(`ALTER DATABASE ${quoteIdentifier(name)} ALLOW_CONNECTIONS true`);
  }
  return rows.filter(({ isBroken }) => !isBroken).map(({ name }) => name);
}
