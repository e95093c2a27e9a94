/** Brings up what every process needs: the system database with its schema, the sealing key, the first account. */

import { ensureFirstAccount, hasAccount } from '../../core/account.ts';
import { makeConsoleLink } from '../../core/console-session.ts';
import { type Core, commandScope } from '../../core/context.ts';
import { type DatabaseOptions, openDatabase } from '../../db/client.ts';
import { migrate } from '../../db/migrate.ts';
import { selectLongestRetention } from '../../db/projects.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Config } from '../../lib/config.ts';
import type { Logger } from '../../lib/log.ts';
import { createSecretBox } from '../../lib/secrets.ts';
import { ensureSecretKey, ensureStackSecret, writeApiKey } from '../../machine/key-files.ts';
import { startSystemDatabase } from '../../machine/system-database.ts';
import { loadAllMigrations } from '../migrations.ts';

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
  const embedded = config.databaseUrl === undefined ? await startSystemDatabase(config, log, progress) : null;
  const options: DatabaseOptions = embedded === null ? { url: config.databaseUrl ?? '' } : embedded.connection;
  const database = openDatabase(options, { poolSize: 2, name: 'catnap-parent' });
  const stop = async () => {
    await database.close();
    await embedded?.stop();
  };
  try {
    await migrate(options, await loadAllMigrations());
    const secretKey = await ensureSecretKey(config.home, !(await hasAccount(database.sql)));
    const core: Core = { database, box: createSecretBox(Buffer.from(secretKey, 'base64')), clock: systemClock, config };
    const stackSecret = await ensureStackSecret(config.home);
    // Without a store there is nowhere to restore it from.
    if (config.backup !== undefined) await embedded?.keepHistory(() => selectLongestRetention(database.sql));
    return { core, database: options, secretKey, stackSecret, ...(await ensureFirstKey(core)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
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
