/** What every function of the domain gets: the database, the sealing box, the time and the settings. */

import type { Database, Sql, Tx } from '../db/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { Config } from '../lib/config.ts';
import type { SecretBox } from '../lib/secrets.ts';

export interface Core {
  readonly database: Database;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly config: Config;
}

/** For reads: `sql` is the pool, or the transaction of the command that reads. */
export interface Scope extends Omit<Core, 'database'> {
  readonly sql: Sql;
}

/** For commands: everything they write is one transaction. */
export interface CommandScope extends Scope {
  readonly tx: Tx;
}

export function readScope(core: Core): Scope {
  return { sql: core.database.sql, box: core.box, clock: core.clock, config: core.config };
}

export function commandScope(core: Core, tx: Tx): CommandScope {
  return { sql: tx, tx, box: core.box, clock: core.clock, config: core.config };
}
