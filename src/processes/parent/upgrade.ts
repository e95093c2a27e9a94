/** What `catnap upgrade` does on the machine, with the migrations of this program. */
import { knownVersions, type MigrationSet } from '../../db/migrate.ts';
import type { Config } from '../../lib/config.ts';
import { readCommit, readVersion } from '../../lib/version.ts';
import type { Check } from '../../machine/doctor/check.ts';
import { checkUpgrade } from '../../machine/upgrade/check.ts';
import type { Release } from '../../machine/upgrade/release-record.ts';
import { type Undone, undoUpgrade } from '../../machine/upgrade/undo.ts';
import { loadAllMigrations } from '../migrations.ts';
import { takeDatabaseLock } from './database-lock.ts';

/** This program, as the record of a data home names it. */
export function thisRelease(sets: readonly MigrationSet[]): Release {
  return { version: readVersion(), commit: readCommit(), schemas: knownVersions(sets) };
}

export async function checkUpgradeHere(config: Config): Promise<Check[]> {
  const sets = await loadAllMigrations();
  return checkUpgrade(config, thisRelease(sets), sets);
}

export async function undoUpgradeHere(
  config: Config,
  to: string | undefined,
  say: (line: string) => void,
): Promise<Undone> {
  const sets = await loadAllMigrations();
  // One that works on the database says so at once; there is nothing to wait for.
  const lockDatabase = (database: Parameters<typeof takeDatabaseLock>[0]) => takeDatabaseLock(database, { waitMs: 0 });
  return undoUpgrade(config, { program: thisRelease(sets), sets, to, say, lockDatabase });
}
