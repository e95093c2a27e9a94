/**
 * `catnap upgrade undo`: gives the system database the schema of an earlier program again, which can then be started.
 * What people have made since stays, as far as the earlier program knows it. Catnap must be stopped.
 */
import { join } from 'node:path';
import type { DatabaseOptions } from '../../db/client.ts';
import { type MigrationSet, undoMigrations } from '../../db/migrate.ts';
import type { Config } from '../../lib/config.ts';
import { createLogger } from '../../lib/log.ts';
import { takeInstanceLock } from '../instance-lock.ts';
import { startSystemDatabase } from '../system-database.ts';
import {
  type Release,
  type ReleaseRecord,
  readReleaseRecord,
  recordUndo,
  releaseName,
  requireNoNewerRelease,
} from './release-record.ts';

export interface Undone {
  /** The program that can be started now. */
  readonly release: string;
  readonly migrations: readonly string[];
}

export interface UndoRequest {
  readonly program: Release;
  readonly sets: readonly MigrationSet[];
  /** A version or commit of the record; undefined for the program before this one. */
  readonly to: string | undefined;
  readonly say: (line: string) => void;
  /** Held while a system database elsewhere is changed, on which another Catnap might work. */
  readonly lockDatabase: (database: DatabaseOptions) => Promise<{ release(): Promise<void> }>;
}

export async function undoUpgrade(config: Config, request: UndoRequest): Promise<Undone> {
  const { program, sets, to, say, lockDatabase } = request;
  await requireNoNewerRelease(config.home, program);
  const record = await readReleaseRecord(config.home);
  const target = chooseTarget(record, to);
  const lock = await takeInstanceLock(join(config.home, 'catnap.sock'), config.home);
  try {
    const embedded = config.databaseUrl === undefined ? await startOnly(config, say) : null;
    try {
      const database: DatabaseOptions = embedded?.connection ?? { url: config.databaseUrl ?? '' };
      const held = embedded === null ? await lockDatabase(database) : null;
      try {
        const migrations = await undoMigrations(database, sets, target.schemas);
        await recordUndo(config.home, target.record, target.release);
        return { release: releaseName(target.release), migrations };
      } finally {
        await held?.release();
      }
    } finally {
      await embedded?.stop();
    }
  } finally {
    await lock.release();
  }
}

/** Without its history: what is written here is copied by the Catnap that comes after. */
function startOnly(config: Config, say: (line: string) => void) {
  return startSystemDatabase(config, createLogger({ level: 'warn', format: config.logFormat, process: 'undo' }), say);
}

function chooseTarget(record: ReleaseRecord | null, to: string | undefined) {
  if (record === null || record.earlier.length === 0) {
    throw new Error('there is nothing to undo: this data home has been used by no earlier Catnap');
  }
  const release =
    to === undefined ? record.earlier[0] : record.earlier.find((one) => [one.version, one.commit].includes(to));
  if (release === undefined) {
    const names = record.earlier.map(({ version, commit }) => version ?? commit).filter((name) => name !== null);
    throw new Error(`--to ${to} has not used this data home; there were: ${names.join(', ') || 'none with a name'}`);
  }
  return { record, release, schemas: release.schemas };
}
