/**
 * One worker for one system database. The lock of a data home keeps a second Catnap from the embedded database, but two
 * homes can be given the same `CATNAP_DATABASE_URL` and the same `secret.key`. Each worker would then take the other's
 * leases, and look in its own home for data that is in the other one.
 *
 * The lock ends with its session, so it is taken again as soon as that has ended. Who comes too late for it has lost
 * the database to another Catnap, and has to stop.
 */
import { randomBytes } from 'node:crypto';
import { connect, type DatabaseOptions } from '../../db/client.ts';
import { delay } from '../../lib/clock.ts';

/** Among advisory locks, which belong to one database. */
const lockKey = 7_070_003;
/** The session of a Catnap that was just killed may still be there for a moment. */
const waitMsMax = 10_000;
const retryMs = 200;
/** A session may be gone for the server and not for its client, who learns of it from the next statement only. */
const lookEveryMs = 30_000;

export interface DatabaseLock {
  /** Settles when another Catnap has it, with what to say about that. */
  readonly lost: Promise<Error>;
  release(): Promise<void>;
}

interface Timing {
  readonly waitMs?: number;
  readonly lookMs?: number;
}

export async function takeDatabaseLock(
  options: DatabaseOptions,
  { waitMs = waitMsMax, lookMs = lookEveryMs }: Timing = {},
): Promise<DatabaseLock> {
  const name = `catnap-lock-${randomBytes(6).toString('hex')}`;
  const holding = new Holding(connect(options, 1, name, { idleSeconds: 0, lifeSeconds: 0, onClose }), name);
  function onClose() {
    void holding.keep();
  }
  for (const giveUpAt = performance.now() + waitMs; !(await holding.take()); ) {
    if (performance.now() > giveUpAt) {
      await holding.release();
      throw new Error(
        'another Catnap is running on this system database, from another data home: stop it first, or run this one ' +
          'with --processes api',
      );
    }
    await delay(retryMs);
  }
  const looking = setInterval(onClose, lookMs);
  looking.unref();
  return {
    lost: holding.lost,
    release: async () => {
      clearInterval(looking);
      await holding.release();
    },
  };
}

class Holding {
  readonly lost: Promise<Error>;
  readonly #sql: ReturnType<typeof connect>;
  readonly #name: string;
  #lose: (why: Error) => void = () => {};
  #wasHeld = false;
  #isOver = false;
  #isKeeping = false;

  constructor(sql: ReturnType<typeof connect>, name: string) {
    this.#sql = sql;
    this.#name = name;
    this.lost = new Promise((resolve) => {
      this.#lose = resolve;
    });
  }

  /** A session may take it again and again, and would have to release it as often; it ends with it instead. */
  async take(): Promise<boolean> {
    try {
      const [row] = await this.#sql<{ isHeld: boolean }[]>`select pg_try_advisory_lock(${lockKey}) as is_held`;
      this.#wasHeld ||= row?.isHeld === true;
      return row?.isHeld === true;
    } catch (error) {
      if (!this.#wasHeld) await this.release();
      throw error;
    }
  }

  /** Returns when it is held again, or lost. Until the database answers nobody else can take it either. */
  async keep(): Promise<void> {
    if (!this.#wasHeld || this.#isKeeping) return;
    this.#isKeeping = true;
    while (!this.#isOver) {
      const isSettled = await this.#retake().catch(() => false);
      if (isSettled) break;
      await delay(retryMs);
    }
    this.#isKeeping = false;
  }

  async #retake(): Promise<boolean> {
    if (await this.take()) return true;
    const holders = await this.#sql<{ pid: number; isMine: boolean }[]>`
      select pid, application_name = ${this.#name} as is_mine from pg_locks join pg_stat_activity using (pid)
      where locktype = 'advisory' and granted and classid = 0 and objid = ${lockKey} and objsubid = 1
        and database = (select oid from pg_database where datname = current_database())`;
    const [other] = holders;
    if (other === undefined) return false;
    if (other.isMine) {
      // Of the connection that broke, and of which the server does not know yet.
      await this.#sql`select pg_terminate_backend(${other.pid})`;
      return false;
    }
    this.#isOver = true;
    this.#lose(
      new Error('another Catnap, from another data home, has taken over this system database: this one has stopped'),
    );
    return true;
  }

  async release(): Promise<void> {
    this.#isOver = true;
    await this.#sql.end({ timeout: 1 });
  }
}
