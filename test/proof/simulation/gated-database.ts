/**
 * The system database as one actor sees it: each statement, each begin and each commit waits at a gate. Statements that
 * are sent together pass in that order. Time in it is that of the simulation.
 */
import type { Database, Sql, Tx } from '../../../src/db/client.ts';
import { type Actor, type Carrier, connectionLost } from './actor.ts';
import { type Client, type LentConnections, type Statement, timeSchema } from './lent-connections.ts';

/**
 * From 2040 on, so that what Postgres itself calls now lies in the past. Not a function in SQL, whose plan is made anew
 * for each statement.
 */
export async function prepareTime(sql: Client): Promise<void> {
  await sql.unsafe(`
    create schema ${timeSchema};
    create unlogged table ${timeSchema}.clock (at timestamptz not null);
    insert into ${timeSchema}.clock values ('2040-01-01');
    create function ${timeSchema}.now() returns timestamptz language plpgsql stable
      as 'begin return (select at from ${timeSchema}.clock); end'`);
}

class Connection implements Carrier {
  /** Keeps what it has locked when a statement has ended. */
  readonly isTransaction: boolean;
  isLost = false;
  /** Those that were sent; none at the beginning and at the end of a transaction, which wait for nobody. */
  #statements: Statement[] = [];

  constructor(isTransaction: boolean) {
    this.isTransaction = isTransaction;
  }

  carry(statement: Statement): void {
    this.#statements.push(statement);
  }

  clear(): void {
    this.#statements = [];
  }

  /** Of the first one that has reached the server: over a new connection, others stay behind until it has ended. */
  get pid(): number | null {
    return this.#statements.find(({ state }) => state !== null)?.state?.pid ?? null;
  }
}

/** Where a statement goes when it is let through, and what follows when it has ended. */
interface Way {
  readonly connection: Connection;
  readonly send: (statement: Statement) => void;
  readonly ended: (statement: Statement) => void;
}

const isStatement = (made: unknown): made is Statement =>
  typeof made === 'object' && made !== null && 'handle' in made && 'executed' in made;

const claim = 'with claimed as (';

/** A statement is sent when somebody waits for it; a fragment of another one never is. */
function hold(actor: Actor, makeWay: () => Way, statement: Statement): Statement {
  statement.handle = async () => {
    if (statement.executed) return;
    statement.executed = true;
    const label = labelOf(statement.strings);
    const fault = await actor.pass(label, ['lose']);
    const { connection, send, ended } = makeWay();
    if (fault === 'lose') connection.isLost = true;
    if (connection.isLost) return statement.reject(connectionLost());
    if (label !== claim && changesQueue(statement.strings)) actor.hasChangedQueue = true;
    const leave = actor.enter(connection);
    const end = () => {
      ended(statement);
      leave(!connection.isTransaction);
    };
    Promise.prototype.then.call(
      statement,
      (rows: readonly { readonly lease?: unknown }[]) => {
        const lease = rows[0]?.lease;
        // Others read operations that somebody else has claimed.
        if (label === claim && typeof lease === 'string') actor.lease ??= lease;
        end();
      },
      end,
    );
    const { resolve } = statement;
    statement.resolve = (rows) => {
      actor.traffic.rows.arrange(statement.strings, rows);
      resolve(rows);
    };
    connection.carry(statement);
    send(statement);
  };
  return statement;
}

const queueChanges = new WeakMap<readonly string[], boolean>();

/** Whether it may leave something to do for a worker that has found nothing: it writes operations, or locks them. */
function changesQueue(strings: readonly string[]): boolean {
  const known = queueChanges.get(strings);
  if (known !== undefined) return known;
  const text = strings.join('');
  const isSo = /\boperations\b/.test(text) && (!/^\s*select\b/.test(text) || /\bfor update\b/.test(text));
  queueChanges.set(strings, isSo);
  return isSo;
}

const labelOf = (strings: readonly string[]) => (strings[0] ?? '').trim().split(/\s+/, 4).join(' ');

function gated<T extends Sql | Tx>(actor: Actor, makeWay: () => Way, sql: T): T {
  const wrap = (made: unknown) => (isStatement(made) ? hold(actor, makeWay, made) : made);
  return new Proxy(sql, {
    apply: (target, _, words) => wrap(Reflect.apply(target as never, undefined, words)),
    get: (target, name) => {
      const member = Reflect.get(target, name);
      return name === 'unsafe' ? (...words: unknown[]) => wrap(Reflect.apply(member as never, target, words)) : member;
    },
  });
}

/** Each statement outside of a transaction may have a connection of its own. */
function makeWayOutside(connections: LentConnections): Way {
  let giveBack = () => {};
  return {
    connection: new Connection(false),
    send: (statement) => {
      const lent = connections.take();
      giveBack = () => connections.giveBack(lent);
      lent.send(statement);
    },
    ended: (statement) => {
      connections.remember(statement);
      giveBack();
    },
  };
}

/** Tells the two ends of a transaction apart for the code above, which learns of neither when its actor has crashed. */
export function gateDatabase(actor: Actor, connections: LentConnections): Database {
  return {
    sql: gated(actor, () => makeWayOutside(connections), connections.control as Sql),
    transaction: (work) => runTransaction(actor, connections, work),
    listen: async () => async () => undefined,
    close: async () => undefined,
  };
}

async function runTransaction<T>(actor: Actor, connections: LentConnections, work: (tx: Tx) => Promise<T>): Promise<T> {
  if ((await actor.pass('begin', ['lose'])) === 'lose') throw connectionLost();
  const lent = connections.take();
  const connection = new Connection(true);
  const way: Way = {
    connection,
    send: (statement) => statement.handler(statement),
    ended: (statement) => connections.remember(statement),
  };
  let isLostAfter = false;
  let leave = actor.enter(connection);
  try {
    const value = await lent.client.begin(async (tx) => {
      leave();
      actor.isInTransaction = true;
      try {
        const made = await Promise.race([work(gated(actor, () => way, tx as Tx)), actor.crashed]);
        const fault = await Promise.race([actor.pass('commit', ['lose', 'after']), actor.crashed]);
        if (fault === 'lose' || connection.isLost) throw connectionLost();
        isLostAfter = fault === 'after';
        return { made };
      } finally {
        actor.isInTransaction = false;
        connection.clear();
        leave = actor.enter(connection);
      }
    });
    if (isLostAfter) throw connectionLost();
    return (value as { made: T }).made;
  } catch (error) {
    if (actor.isDead) return new Promise(() => {});
    throw error;
  } finally {
    // What was sent together with a statement that failed, and still waits at a gate, has no connection any more.
    connection.isLost = true;
    connections.giveBack(lent);
    leave(true);
  }
}
