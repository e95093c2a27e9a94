/**
 * What `catnap keys recover` does on the machine: a new personal key of the operator, for when no other is left. It
 * needs the system database's password and the right to write to the data home, so it is for whoever runs Catnap.
 */
import { isOperatorKey, makeRecoveredKey } from '../core/account.ts';
import type { Config } from '../lib/config.ts';
import { databaseFailure } from '../lib/database-failure.ts';
import { readApiKey, writeApiKey } from '../machine/key-files.ts';
import { withSystemDatabase } from '../machine/system-database.ts';

export interface RecoveredKey {
  readonly key: string;
  /** False when the key in the data home still works: it is the one that is returned. */
  readonly isNew: boolean;
}

export async function recoverKey(config: Config): Promise<RecoveredKey> {
  try {
    return await withSystemDatabase(config, async (database) => {
      const kept = await readApiKey(config.home);
      if (kept !== undefined && (await isOperatorKey(database.sql, kept, new Date()))) {
        return { key: kept, isNew: false };
      }
      return await database.transaction(async (tx) => {
        const key = await makeRecoveredKey(tx);
        // Before the commit: a key that exists only in the database would help nobody.
        await writeApiKey(config.home, key);
        return { key, isNew: true };
      });
    });
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'EACCES') {
      throw new Error(`${config.home} is not yours to read and write: run this as the user who starts Catnap`, {
        cause: thrown,
      });
    }
    if (databaseFailure(thrown) === null) throw thrown;
    throw new Error('the system database does not answer: start Catnap, then run this again', { cause: thrown });
  }
}
