/**
 * Forward-only migrations in plain SQL. Each product brings a set of its own, numbered from 1, and one table records
 * what was applied of each. Safe when several processes start at once: an advisory lock lets one migrate while the
 * others wait, and all of it is one transaction.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { isBeforeRelease, lastVersionsAdopted, stepsRenamed } from './before-release.ts';
import { connect, type DatabaseOptions, schemaName, type Tx } from './client.ts';

const serverVersionMin = 140_000;
/** Any fixed number: the name of the lock that migrating processes queue on. */
const lockKey = 7_070_001;

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

export interface MigrationSet {
  /** Recorded with every migration that was applied, so it never changes. */
  readonly name: string;
  readonly migrations: readonly Migration[];
}

interface AppliedMigration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
}

export class SchemaError extends Error {
  override name = 'SchemaError';
}

export async function loadMigrations(directory: URL): Promise<Migration[]> {
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

export async function loadPlatformMigrations(): Promise<MigrationSet> {
  return { name: 'platform', migrations: await loadMigrations(new URL('./migrations/', import.meta.url)) };
}

/** Brings every set up to date, in the order given, and returns how many migrations were applied. */
export async function migrate(options: DatabaseOptions, sets: readonly MigrationSet[]): Promise<number> {
  const sql = connect(options, 1, 'catnap-migrate');
  try {
    const [server] = await sql<{ version: number }[]>`select current_setting('server_version_num')::int as version`;
    if ((server?.version ?? 0) < serverVersionMin) {
      throw new SchemaError('the system database must be Postgres 14 or newer');
    }
    return await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${lockKey})`;
      await tx`create schema if not exists ${tx(schemaName)}`;
      await prepareRecords(tx, sets);
      let count = 0;
      for (const set of sets) count += await migrateSet(tx, set);
      return count;
    });
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Creates the table of applied migrations, and replaces the one from before the first release if there is one. */
async function prepareRecords(tx: Tx, sets: readonly MigrationSet[]): Promise<void> {
  const columns = await tx<{ name: string }[]>`
    select attname as name from pg_attribute where attrelid = to_regclass('schema_migrations') and attnum > 0`;
  if (columns.some(({ name }) => name === 'migration_set')) return;
  const isAdopted = columns.length > 0 && (await retireOldRecords(tx));
  await tx`
    create table schema_migrations (
      migration_set text not null, version integer not null, name text not null, checksum text not null,
      applied_at timestamptz not null default now(), primary key (migration_set, version))`;
  if (!isAdopted) return;
  for (const set of sets) {
    const lastVersion = lastVersionsAdopted[set.name] ?? 0;
    for (const migration of set.migrations) {
      if (migration.version <= lastVersion) await recordApplied(tx, set.name, migration);
    }
  }
  for (const { job, before, now } of stepsRenamed) {
    await tx`update operations set step = ${now} where job = ${job} and step = ${before}`;
  }
}

/** Drops the old table, and returns whether it recorded a schema, which is then adopted. */
async function retireOldRecords(tx: Tx): Promise<boolean> {
  const applied = await tx<AppliedMigration[]>`select version, name, checksum from schema_migrations order by version`;
  if (applied.length > 0 && !isBeforeRelease(applied)) {
    throw new SchemaError(
      `the system database has schema version ${applied.at(-1)?.version} from before the first release, which this ` +
        'program cannot take over: start a Catnap of commit 3d0a0f7 on it once, or begin with a new CATNAP_HOME',
    );
  }
  await tx`drop table schema_migrations`;
  return applied.length > 0;
}

async function migrateSet(tx: Tx, set: MigrationSet): Promise<number> {
  const applied = await tx<AppliedMigration[]>`
    select version, name, checksum from schema_migrations where migration_set = ${set.name} order by version`;
  requireKnown(applied, set);
  const missing = set.migrations.slice(applied.length);
  for (const migration of missing) {
    await tx.unsafe(migration.sql);
    await recordApplied(tx, set.name, migration);
  }
  return missing.length;
}

async function recordApplied(tx: Tx, setName: string, { version, name, checksum }: Migration): Promise<void> {
  await tx`insert into schema_migrations ${tx({ migration_set: setName, version, name, checksum })}`;
}

/** An older program must not run on a newer schema, nor any program on one that was changed by hand. */
function requireKnown(applied: readonly AppliedMigration[], { name: setName, migrations }: MigrationSet): void {
  for (const [index, row] of applied.entries()) {
    const known = migrations[index];
    if (known === undefined) {
      throw new SchemaError(
        `the system database has ${setName} schema version ${applied.at(-1)?.version}, this program knows up to ` +
          `${migrations.at(-1)?.version}: start the newer Catnap that made it`,
      );
    }
    if (known.version !== row.version || known.checksum !== row.checksum) {
      throw new SchemaError(
        `${setName} migration ${row.name} in the system database differs from the program's ${known.name}`,
      );
    }
  }
}
