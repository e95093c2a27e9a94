/**
 * Makes way for Catnap's own changes of roles and databases. A session of a tenant's that has locked what is to change
 * could keep its owner out for as long as it likes, so after a moment of patience it is ended. A prepared transaction
 * would do so even across restarts: one that is in the way is rolled back, by a janitor role in its own database.
 */

import { delay } from '../../lib/clock.ts';
import { newSecret } from '../../lib/ids.ts';
import type { MadeWay } from '../interface/driver.ts';
import { adminRole } from '../interface/own-logins.ts';
import { type EnterAs, type Session, shielded, sqlState } from './admin-session.ts';
import { dropped, janitorPattern, makeJanitor } from './janitor.ts';
import { quoteIdentifier, quoteLiteral } from './sql-text.ts';

/** An ordinary transaction ends sooner. */
const patienceMs = 1_000;
const roundMs = 200;

/** How to reach the server: a session of Catnap's own login, and one of any other. */
export interface Ways {
  readonly asAdmin: <T>(work: (sql: Session) => Promise<T>) => Promise<T>;
  readonly enterAs: EnterAs;
}

/** What was ended so far. */
export interface WayMade extends MadeWay {
  sessions: number;
  readonly prepared: string[];
}

/** Runs a change, and ends whatever it has to wait for; `made` collects what was ended. */
export async function makingWay<T>(ways: Ways, made: WayMade, change: () => Promise<T>): Promise<T> {
  const done = new AbortController();
  const watching = watch(ways, made, done.signal);
  try {
    return await change();
  } finally {
    done.abort();
    await watching;
  }
}

/** A session of its own: that of the change is busy waiting. */
async function watch(ways: Ways, made: WayMade, signal: AbortSignal): Promise<void> {
  await delay(patienceMs, signal);
  while (!signal.aborted) {
    // What goes wrong here leaves the change waiting, and the next round tries again.
    await ways
      .asAdmin(async (sql) => {
        made.sessions += await endBlockingSessions(sql);
        for (const transaction of await blockingTransactions(sql)) {
          if (await rollBack(sql, transaction, ways.enterAs)) made.prepared.push(transaction.gid);
        }
      })
      .catch(() => undefined);
    await delay(roundMs, signal);
  }
}

/** Waits for a lock of any session that works on a change: of Catnap's own login, or of a janitor. */
const ownWaits = (sql: Session) => sql`
  (SELECT l.* FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
   WHERE NOT l.granted AND l.waitstart < clock_timestamp() - ${patienceMs} * interval '1 ms'
     AND (a.usename = ${adminRole} OR a.usename ~ ${janitorPattern}))`;

async function endBlockingSessions(sql: Session): Promise<number> {
  const ended = await sql`
    SELECT pg_terminate_backend(b.pid, 2000) FROM pg_stat_activity b
    WHERE b.pid IN (SELECT unnest(pg_blocking_pids(w.pid)) FROM ${ownWaits(sql)} w)
      AND b.usename IS DISTINCT FROM ${adminRole} AND coalesce(b.usename !~ ${janitorPattern}, true)`;
  return ended.length;
}

export interface PreparedTransaction {
  readonly gid: string;
  readonly owner: string;
  readonly database: string;
}

/**
 * A prepared transaction has no process, and `pg_blocking_pids` says 0 for it. So it is found by the lock itself: its
 * holder is the transaction that, as every one does, also holds a lock on its own number.
 */
async function blockingTransactions(sql: Session): Promise<PreparedTransaction[]> {
  return sql<PreparedTransaction[]>`
    SELECT DISTINCT p.gid, p.owner, p.database
    FROM ${ownWaits(sql)} w JOIN pg_locks h ON h.granted AND h.pid IS NULL
        AND (h.locktype, h.database, h.relation, h.page, h.tuple, h.transactionid, h.classid, h.objid, h.objsubid)
          IS NOT DISTINCT FROM
            (w.locktype, w.database, w.relation, w.page, w.tuple, w.transactionid, w.classid, w.objid, w.objsubid)
      JOIN pg_locks o ON o.virtualtransaction = h.virtualtransaction AND o.pid IS NULL AND o.locktype = 'transactionid'
      JOIN pg_prepared_xacts p ON p.transaction = o.transactionid
    WHERE 0 = ANY (pg_blocking_pids(w.pid)) AND strpos(${conflicts(sql)}, h.mode) > 0`;
}

/** The modes that a session which waits for `w.mode` waits for, as Postgres documents them. */
const conflicts = (sql: Session) => sql`
  (CASE w.mode
    WHEN 'AccessShareLock' THEN 'AccessExclusiveLock'
    WHEN 'RowShareLock' THEN ' ExclusiveLock AccessExclusiveLock'
    WHEN 'RowExclusiveLock' THEN ' ShareLock ShareRowExclusiveLock ExclusiveLock AccessExclusiveLock'
    ELSE h.mode END)`;

/** Those of a database that is to be renamed or dropped: any of them makes Postgres refuse that. */
export async function rollBackIn(sql: Session, database: string, ways: Ways, made: WayMade) {
  const found = await sql<PreparedTransaction[]>`
    SELECT gid, owner, database FROM pg_prepared_xacts WHERE database = ${database}`;
  for (const transaction of found) {
    if (await rollBack(sql, transaction, ways.enterAs)) made.prepared.push(transaction.gid);
  }
}

/** Only inside its database, and only as its owner. False when it has ended by itself. */
async function rollBack(sql: Session, { gid, owner, database }: PreparedTransaction, enterAs: EnterAs) {
  const password = newSecret();
  const janitor = await makeJanitor(sql, password);
  try {
    await joinAtOnce(sql, janitor, owner);
    await enterAs(await shielded(sql, { username: janitor, password, database }), async (inside) => {
      await inside.unsafe(`SET ROLE ${quoteIdentifier(owner)}`);
      await inside.unsafe(`ROLLBACK PREPARED ${quoteLiteral(gid)}`);
    });
    return true;
  } catch (error) {
    if (sqlState(error) === noSuchTransaction) return false;
    throw error;
  } finally {
    await dropped(sql, janitor);
  }
}

const noSuchTransaction = '42704';

/** As GRANT does, which would wait for a transaction that has granted the same role, perhaps the very one. */
async function joinAtOnce(sql: Session, janitor: string, owner: string): Promise<void> {
  const [server] = await sql<{ version: number }[]>`SELECT current_setting('server_version_num')::int AS version`;
  const isOld = (server?.version ?? 0) < 160_000;
  const [oid, options] = isOld
    ? [sql``, sql``]
    : [sql`pg_nextoid('pg_auth_members', 'oid', 'pg_auth_members_oid_index'),`, sql`, true, true`];
  await sql`
    INSERT INTO pg_auth_members
    SELECT ${oid} r.oid, m.oid, a.oid, false ${options} FROM pg_roles r, pg_roles m, pg_roles a
    WHERE r.rolname = ${owner} AND m.rolname = ${janitor} AND a.rolname = ${adminRole}`;
}
