/** Brings up what every process needs: the system database with its schema, the sealing key, the first account. */
import { createHmac } from 'node:crypto';
import { ensureFirstAccount, hasAccount } from '../../core/account.ts';
import { makeConsoleLink } from '../../core/console-session.ts';
import { type Core, commandScope } from '../../core/context.ts';
import { type DatabaseOptions, openDatabase, type Sql } from '../../db/client.ts';
import { claimKeyFingerprint } from '../../db/installation.ts';
import { migrate } from '../../db/migrate.ts';
import { selectLongestRetention } from '../../db/projects.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Config } from '../../lib/config.ts';
import type { Logger } from '../../lib/log.ts';
import { createSecretBox } from '../../lib/secrets.ts';
import { ensureSecretKey, ensureStackSecret, writeApiKey } from '../../machine/key-files.ts';
import { startSystemDatabase } from '../../machine/system-database.ts';
import { recordRelease, requireNoNewerRelease } from '../../machine/upgrade/release-record.ts';
import { loadAllMigrations } from '../migrations.ts';
import { thisRelease } from './upgrade.ts';

export interface System {
  readonly core: Core;
  readonly database: DatabaseOptions;
  readonly secretKey: string;
  readonly stackSecret: string;
  /** Set when this start created the first key. */
  readonly newApiKey: string | null;
  /** Signs in to the console once, with the key that this start created. */
  readonly consoleLink: string | null;
  stop(): Promise<void>;
}

export async function startSystem(config: Config, log: Logger, progress: (line: string) => void): Promise<System> {
  const sets = await loadAllMigrations();
  const program = thisRelease(sets);
  await requireNoNewerRelease(config.home, program);
  const embedded = config.databaseUrl === undefined ? await startSystemDatabase(config, log, progress) : null;
  const options: DatabaseOptions = embedded === null ? { url: config.databaseUrl ?? '' } : embedded.connection;
  const database = openDatabase(options, { poolSize: 2, name: 'catnap-parent' });
  const stop = async () => {
    await database.close();
    await embedded?.stop();
  };
  try {
    const { before } = await migrate(options, sets);
    await recordRelease(config.home, program, before);
    const secretKey = await ensureSecretKey(config, !(await hasAccount(database.sql)));
    await requireSameKey(database.sql, secretKey);
    const core: Core = { database, box: createSecretBox(Buffer.from(secretKey, 'base64')), clock: systemClock, config };
    const stackSecret = await ensureStackSecret(config);
    // Without a store there is nowhere to restore it from.
    if (config.backup !== undefined) await embedded?.keepHistory(() => selectLongestRetention(database.sql));
    return { core, database: options, secretKey, stackSecret, ...(await ensureFirstKey(core)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Two Catnaps that start at once on a new database could each make a key of its own, and neither would open what the
 * other seals. The first one to write down its key decides.
 */
async function requireSameKey(sql: Sql, secretKey: string): Promise<void> {
  const fingerprint = createHmac('sha256', secretKey).update('fingerprint of the key').digest();
  if ((await claimKeyFingerprint(sql, fingerprint)).equals(fingerprint)) return;
  throw new Error(
    'the system database belongs to a Catnap with another secret.key: put that file into the data home, or set ' +
      'CATNAP_SECRET_KEY to what is in it',
  );
}

/** The file is written before the commit: a key that exists only in the database would lock everyone out. */
async function ensureFirstKey(core: Core): Promise<Pick<System, 'newApiKey' | 'consoleLink'>> {
  return core.database.transaction(async (tx) => {
    const scope = commandScope(core, tx);
    const first = await ensureFirstAccount(scope);
    if (first === null) return { newApiKey: null, consoleLink: null };
    await writeApiKey(core.config.home, first.token);
    return { newApiKey: first.token, consoleLink: (await makeConsoleLink(scope, first.token)) ?? null };
  });
}
