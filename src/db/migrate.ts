/**
 * Forward-only migrations in plain SQL. Safe when several processes start at once: an advisory lock lets one migrate
 * while the others wait, and a transaction makes each migration all or nothing.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { connect, type DatabaseOptions, schemaName } from './client.ts';

const serverVersionMin = 140_000;
/** Any fixed number: the name of the lock that migrating processes queue on. */
const lockKey = 7_070_001;

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

export class SchemaError extends Error {
  override name = 'SchemaError';
}

export async function loadMigrations(directory = new URL('./migrations/', import.meta.url)): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{4}-.*\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, directory), 'utf8');
      return {
        version: Number(name.slice(0, 4)),
        name,
        sql,
        checksum: createHash('sha256').update(sql).digest('hex'),
      };
    }),
  );
}

/** Brings the schema up to date and tells how many migrations were applied. */
export async function migrate(options: DatabaseOptions, migrations?: readonly Migration[]): Promise<number> {
  const wanted = migrations ?? (await loadMigrations());
  const sql = connect(options, 1, 'catnap-migrate');
  try {
    const [server] = await sql<{ version: number }[]>`select current_setting('server_version_num')::int as version`;
    if ((server?.version ?? 0) < serverVersionMin) {
      throw new SchemaError('the system database must be Postgres 14 or newer');
    }
    return await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${lockKey})`;
      await tx`create schema if not exists ${tx(schemaName)}`;
      await tx`create table if not exists schema_migrations (
        version integer primary key, name text not null, checksum text not null,
        applied_at timestamptz not null default now())`;
      const applied = await tx<{ version: number; name: string; checksum: string }[]>`
        select version, name, checksum from schema_migrations order by version`;
      requireKnown(applied, wanted);
      const missing = wanted.slice(applied.length);
      for (const migration of missing) {
        await tx.unsafe(migration.sql);
        await tx`insert into schema_migrations ${tx({
          version: migration.version,
          name: migration.name,
          checksum: migration.checksum,
        })}`;
      }
      return missing.length;
    });
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** An older program must not run on a newer schema, nor any program on one that was changed by hand. */
function requireKnown(
  applied: readonly { version: number; name: string; checksum: string }[],
  wanted: readonly Migration[],
) {
  for (const [index, row] of applied.entries()) {
    const known = wanted[index];
    if (known === undefined) {
      throw new SchemaError(
        `the system database has schema version ${applied.at(-1)?.version}, this program knows up to ` +
          `${wanted.at(-1)?.version}: start the newer Catnap that made it`,
      );
    }
    if (known.version !== row.version || known.checksum !== row.checksum) {
      throw new SchemaError(`migration ${row.name} in the system database differs from the program's ${known.name}`);
    }
  }
}
