/**
 * Migrations in plain SQL. Each product brings a set of its own, numbered from 1, and one table records what was
 * applied of each. Safe when several processes start at once: an advisory lock lets one migrate while the others wait.
 * All of it is one transaction, so that an upgrade that fails or is killed has changed nothing, and can be started
 * again. Going back takes the undo of each migration, in a file beside it.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { delay } from '../lib/clock.ts';
import { isBeforeRelease, lastVersionsAdopted, stepsRenamed } from './before-release.ts';
import { connect, type DatabaseOptions, type Sql, schemaName, type Tx } from './client.ts';

const serverVersionMin = 140_000;
/** Any fixed number: the name of the lock that migrating processes queue on. */
const lockKey = 7_070_001;
/**
 * A statement that waits for a table makes everybody else wait behind it. Other Catnaps may be serving on this
 * database, so a migration gives up its place after this time, and tries again when they had theirs.
 */
const lockTimeoutMs = 2_000;
const retryMs = 500;
const triesMax = 60;
const lockNotAvailable = '55P03';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /** Makes the schema what it was before; null where there is none. */
  readonly undo: string | null;
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
  const files = await readdir(directory);
  const names = files.filter((name) => /^\d{4}-.*(?<!\.undo)\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, directory), 'utf8');
      const undoName = name.replace(/\.sql$/, '.undo.sql');
      return {
        version: Number(name.slice(0, 4)),
        name,
        sql,
        checksum: createHash('sha256').update(sql).digest('hex'),
        undo: files.includes(undoName) ? await readFile(new URL(undoName, directory), 'utf8') : null,
      };
    }),
  );
}

export async function loadPlatformMigrations(): Promise<MigrationSet> {
  return { name: 'platform', migrations: await loadMigrations(new URL('./migrations/', import.meta.url)) };
}

/** The version of each set that a database has, or that a program knows, by the names of the sets. */
export type SchemaVersions = Readonly<Record<string, number>>;

export function knownVersions(sets: readonly MigrationSet[]): SchemaVersions {
  return Object.fromEntries(sets.map(({ name, migrations }) => [name, migrations.at(-1)?.version ?? 0]));
}

/** Changes nothing. Null for a database that no Catnap has used, or only one from before the first release. */
export async function readVersions(sql: Sql): Promise<SchemaVersions | null> {
  const columns = await recordColumns(sql);
  if (!columns.includes('migration_set')) return null;
  const rows = await sql<{ set: string; version: number }[]>`
    select migration_set as set, max(version) as version from schema_migrations group by migration_set`;
  return Object.fromEntries(rows.map(({ set, version }) => [set, version]));
}

export interface Migrated {
  /** How many migrations were applied. */
  readonly count: number;
  /** What the database had before; null for a new one. */
  readonly before: SchemaVersions | null;
}

/** Brings every set up to date, in the order given. */
export function migrate(
  options: DatabaseOptions,
  sets: readonly MigrationSet[],
  lockMs = lockTimeoutMs,
): Promise<Migrated> {
  return changeSchema(options, lockMs, async (tx) => {
    await tx`create schema if not exists ${tx(schemaName)}`;
    const before = await readVersions(tx);
    await prepareRecords(tx, sets);
    let count = 0;
    for (const set of sets) count += await migrateSet(tx, set);
    return { count, before };
  });
}

/** Takes back what is newer than the target, the latest first, and returns the names of what was undone. */
export function undoMigrations(
  options: DatabaseOptions,
  sets: readonly MigrationSet[],
  target: SchemaVersions,
): Promise<string[]> {
  return changeSchema(options, lockTimeoutMs, async (tx) => {
    const undone: string[] = [];
    for (const set of sets.toReversed()) undone.push(...(await undoSet(tx, set, target[set.name] ?? 0)));
    return undone;
  });
}

async function changeSchema<T>(options: DatabaseOptions, lockMs: number, work: (tx: Tx) => Promise<T>): Promise<T> {
  const sql = connect(options, 1, 'catnap-migrate');
  const attempt = async (): Promise<T> => {
    const result = await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${lockKey})`;
      // Behind the lock above, for which a process waits as long as another one migrates.
      await tx`select set_config('lock_timeout', ${String(lockMs)}, true)`;
      return { value: await work(tx) };
    });
    return (result as { value: T }).value;
  };
  try {
    const [server] = await sql<{ version: number }[]>`select current_setting('server_version_num')::int as version`;
    if ((server?.version ?? 0) < serverVersionMin) {
      throw new SchemaError('the system database must be Postgres 14 or newer');
    }
    for (let tries = 1; ; tries += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === lockNotAvailable)) throw error;
        if (tries === triesMax) {
          throw new SchemaError(
            'the system database could not be upgraded: other sessions keep its tables locked. Nothing was changed.',
            { cause: error },
          );
        }
        await delay(retryMs);
      }
    }
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Creates the table of applied migrations, and replaces the one from before the first release if there is one. */
async function prepareRecords(tx: Tx, sets: readonly MigrationSet[]): Promise<void> {
  const columns = await recordColumns(tx);
  if (columns.includes('migration_set')) return;
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

async function recordColumns(sql: Sql): Promise<string[]> {
  const columns = await sql<{ name: string }[]>`
    select attname as name from pg_attribute where attrelid = to_regclass('schema_migrations') and attnum > 0`;
  return columns.map(({ name }) => name);
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
  const applied = await selectApplied(tx, set);
  const missing = set.migrations.slice(applied.length);
  for (const migration of missing) {
    await tx.unsafe(migration.sql);
    await recordApplied(tx, set.name, migration);
  }
  return missing.length;
}

async function undoSet(tx: Tx, set: MigrationSet, target: number): Promise<string[]> {
  const applied = await selectApplied(tx, set);
  const newer = set.migrations.slice(0, applied.length).filter(({ version }) => version > target);
  for (const { name, version, undo } of newer.toReversed()) {
    if (undo === null) throw new SchemaError(`${set.name} migration ${name} cannot be undone: restore a backup`);
    await tx.unsafe(undo);
    await tx`delete from schema_migrations where migration_set = ${set.name} and version = ${version}`;
  }
  return newer.toReversed().map(({ name }) => name);
}

async function selectApplied(tx: Tx, set: MigrationSet): Promise<readonly AppliedMigration[]> {
  const applied = await tx<AppliedMigration[]>`
    select version, name, checksum from schema_migrations where migration_set = ${set.name} order by version`;
  requireKnown(applied, set);
  return applied;
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
