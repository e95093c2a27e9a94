/**
 * `catnap upgrade check`: what a start of this program would change on a data home that another one has used. It is
 * meant to be run while the older one still serves, and changes nothing.
 */
import { existsSync } from 'node:fs';
import { createLayout } from '../../compute/local/host/home/layout.ts';
import { currentRelease } from '../../compute/local/host/postgres/builds.ts';
import type { Database } from '../../db/client.ts';
import { knownVersions, type MigrationSet, readVersions, type SchemaVersions } from '../../db/migrate.ts';
import type { Config } from '../../lib/config.ts';
import { databaseFailure } from '../../lib/database-failure.ts';
import { type Check, fail, ok, warn } from '../doctor/check.ts';
import { type NamedCheck, runEach } from '../doctor/doctor.ts';
import { checkFreeDisk } from '../doctor/home.ts';
import { checkNode } from '../doctor/machine.ts';
import { withSystemDatabase } from '../system-database.ts';
import { type Release, type ReleaseRecord, readReleaseRecord, releaseName } from './release-record.ts';

export async function checkUpgrade(config: Config, program: Release, sets: readonly MigrationSet[]): Promise<Check[]> {
  const record = await readReleaseRecord(config.home);
  return runEach([
    ['program', async () => ok('program', releaseName(program))],
    ['Node', async () => checkNode(process.versions.node)],
    ['data home', async () => checkRecord(config.home, record)],
    ['system database', () => checkSchemas(config, record, sets)],
    ...config.pgVersions.map((major): NamedCheck => [`Postgres ${major}`, () => checkBuild(major, config)]),
    ['free disk', () => checkFreeDisk(config.home)],
    ['copies', async () => checkCopies(config)],
  ]);
}

function checkRecord(home: string, record: ReleaseRecord | null): Check {
  const name = 'data home';
  if (record !== null) return ok(name, `${home}, last used by ${releaseName(record)}`);
  return existsSync(home) ? ok(name, `${home}, without a record of who used it`) : ok(name, `${home} will be made`);
}

async function checkSchemas(
  config: Config,
  record: ReleaseRecord | null,
  sets: readonly MigrationSet[],
): Promise<Check> {
  const name = 'system database';
  const found = await withSystemDatabase(config, ({ sql }: Database) => readVersions(sql)).catch((error: unknown) => {
    // It runs with Catnap; without it, the record says what it has.
    if (isAway(error)) return record?.schemas ?? 'unknown';
    throw error;
  });
  if (found === 'unknown') {
    return warn(name, 'does not run, and there is no record of it', 'run this while the older Catnap is running');
  }
  return found === null ? ok(name, 'is new') : judgeSchemas(found, sets);
}

function isAway(error: unknown): boolean {
  const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
  return isMissing || databaseFailure(error) !== null;
}

export function judgeSchemas(found: SchemaVersions, sets: readonly MigrationSet[]): Check {
  const name = 'system database';
  const known = knownVersions(sets);
  const newer = Object.entries(found).find(([set, version]) => version > (known[set] ?? 0));
  if (newer !== undefined) {
    const [set, version] = newer;
    const advice = 'start the newer Catnap that made it, or go back with its `catnap upgrade undo`';
    return fail(name, `has ${set} schema ${version}, this program knows up to ${known[set] ?? 0}`, advice);
  }
  const missing = sets.flatMap((set) => set.migrations.filter(({ version }) => version > (found[set.name] ?? 0)));
  if (missing.length === 0) return ok(name, 'has the schema of this program');
  const last = missing.at(-1)?.name;
  const detail =
    missing.length === 1
      ? `migration ${last} will be applied`
      : `${missing.length} migrations will be applied, up to ${last}`;
  const without = missing.filter(({ undo }) => undo === null).map((migration) => migration.name);
  if (without.length === 0) return ok(name, `${detail}; \`catnap upgrade undo\` goes back`);
  const advice = `take a backup first: there is no way back behind ${without.at(-1)} but to restore it`;
  return warn(name, detail, advice);
}

/** Computes that are awake keep the build that they were started with. */
async function checkBuild(major: number, config: Config): Promise<Check> {
  const name = `Postgres ${major}`;
  const layout = createLayout(config.home);
  const release = await currentRelease(major, config, layout);
  if (config.pgBin[major] !== undefined || existsSync(layout.build(major, release))) return ok(name, release);
  return ok(name, `${release}, which is new here: computes get it at their next start`);
}

function checkCopies({ backup, databaseUrl }: Config): Check {
  if (backup !== undefined) return ok('copies', 'go off the machine, continuously');
  const what = databaseUrl === undefined ? 'the home' : 'the home and the system database';
  return warn('copies', 'none go off the machine', `copy ${what} before the upgrade, or set CATNAP_BACKUP_URL`);
}
