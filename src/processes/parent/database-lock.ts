/**
 * One worker for one system database. The lock of a data home keeps a second Catnap from the embedded database, but two
 * homes can be given the same `CATNAP_DATABASE_URL` and the same `secret.key`. Each worker would then take the other's
 * leases, and look in its own home for data that is in the other one.
 */
import { connect, type DatabaseOptions } from '../../db/client.ts';
import { delay } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';

/** Among advisory locks, which belong to one database. */
const lockKey = 7_070_003;
/** The session of a Catnap that was just killed may still be there for a moment. */
const waitMsMax = 10_000;
const retryMs = 200;
/** The lock ends with its session, so it is taken again after the database was restarted. */
const lookEveryMs = 30_000;

export interface DatabaseLock {
  release(): Promise<void>;
}

interface Timing {
  readonly waitMs?: number;
  readonly lookMs?: number;
}

export async function takeDatabaseLock(
  options: DatabaseOptions,
  log: Logger,
  { waitMs = waitMsMax, lookMs = lookEveryMs }: Timing = {},
): Promise<DatabaseLock> {
  const sql = connect(options, 1, 'catnap-lock', { idleSeconds: 0, lifeSeconds: 0 });
  // A session that takes the lock twice would have to release it twice, which does not matter here: it ends with it.
  const take = async () => {
    const [row] = await sql<{ held: boolean }[]>`select pg_try_advisory_lock(${lockKey}) as held`;
    return row?.held === true;
  };
  try {
    for (const giveUpAt = performance.now() + waitMs; !(await take()); ) {
      if (performance.now() > giveUpAt) {
        throw new Error(
          'another Catnap is running on this system database, from another data home: stop it first, or run this one ' +
            'with --processes api',
        );
      }
      await delay(retryMs);
    }
  } catch (error) {
    await sql.end({ timeout: 0 });
    throw error;
  }
  const looking = setInterval(() => {
    take().then(
      (isHeld) => isHeld || log.error('another Catnap has begun to work on this system database: stop one of them'),
      () => {},
    );
  }, lookMs);
  looking.unref();
  return {
    release: async () => {
      clearInterval(looking);
      await sql.end({ timeout: 1 });
    },
  };
}
