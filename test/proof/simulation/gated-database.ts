/**
 * The system database as one actor sees it: each statement, each begin and each commit waits at a gate. Statements that
 * are sent together pass in that order. Time in it is that of the simulation.
 */
import { connect, type Database, type DatabaseOptions, type Sql, schemaName, type Tx } from '../../../src/db/client.ts';
import { type Actor, connectionLost } from './actor.ts';

export type Connections = ReturnType<typeof connect>;

/** Before Catnap's schema, and before the functions of Postgres: its `now()` is the one that statements find. */
export const timeSchema = 'simulated';

export function openConnections(options: DatabaseOptions, name: string): Connections {
  const sql = connect(options, 3, name, { idleSeconds: 0, waitForDisk: false });
  Object.assign(sql.options.connection, {
    search_path: `${timeSchema}, ${schemaName}, pg_catalog`,
    statement_timeout: 0,
    // A schedule may hold a transaction open while a busy machine looks elsewhere.
    idle_in_transaction_session_timeout: 0,
  });
  return sql;
}

/**
 * From 2040 on, so that what Postgres itself calls now lies in the past. Not a function in SQL, whose plan is made anew
 * for each statement.
 */
export async function prepareTime(sql: Connections): Promise<void> {
  await sql.unsafe(`
    create schema ${timeSchema};
    create unlogged table ${timeSchema}.clock (at timestamptz not null);
    insert into ${timeSchema}.clock values ('2040-01-01');
    create function ${timeSchema}.now() returns timestamptz language plpgsql stable
      as 'begin return (select at from ${timeSchema}.clock); end'`);
}

/** What the driver's statements are, beyond what its types say. */
interface Statement extends Promise<readonly { readonly lease?: unknown }[]> {
  executed: boolean;
  readonly strings: readonly string[];
  readonly handler: (statement: Statement) => void;
  readonly reject: (error: Error) => void;
  handle: () => Promise<void>;
}

interface Connection {
  isLost: boolean;
  /** Keeps what it has locked when a statement has ended. */
  readonly isTransaction: boolean;
}

const isStatement = (made: unknown): made is Statement =>
  typeof made === 'object' && made !== null && 'handle' in made && 'executed' in made;

const claim = 'update operations set lease';

/** A statement is sent when somebody waits for it; a fragment of another one never is. */
function hold(actor: Actor, connection: Connection, statement: Statement): Statement {
  statement.handle = async () => {
    if (statement.executed) return;
    statement.executed = true;
    const label = labelOf(statement.strings);
    const fault = await actor.pass(label, ['lose']);
    if (fault === 'lose') connection.isLost = true;
    if (connection.isLost) return statement.reject(connectionLost());
    const leave = actor.enter(connection);
    const ended = () => leave(!connection.isTransaction);
    Promise.prototype.then.call(
      statement,
      (rows: readonly { readonly lease?: unknown }[]) => {
        const lease = rows[0]?.lease;
        // Others read operations that somebody else has claimed.
        if (label === claim && typeof lease === 'string') actor.lease ??= lease;
        ended();
      },
      ended,
    );
    statement.handler(statement);
  };
  return statement;
}

const labelOf = (strings: readonly string[]) => (strings[0] ?? '').trim().split(/\s+/, 4).join(' ');

function gated<T extends Sql | Tx>(actor: Actor, connection: () => Connection, sql: T): T {
  const wrap = (made: unknown) => (isStatement(made) ? hold(actor, connection(), made) : made);
  return new Proxy(sql, {
    apply: (target, _, words) => wrap(Reflect.apply(target as never, undefined, words)),
    get: (target, name) => {
      const member = Reflect.get(target, name);
      return name === 'unsafe' ? (...words: unknown[]) => wrap(Reflect.apply(member as never, target, words)) : member;
    },
  });
}

/** Tells the two ends of a transaction apart for the code above, which learns of neither when its actor has crashed. */
export function gateDatabase(actor: Actor, sql: Connections): Database {
  return {
    // Each statement outside of a transaction may have a connection of its own.
    sql: gated(actor, () => ({ isLost: false, isTransaction: false }), sql as Sql),
    transaction: (work) => runTransaction(actor, sql, work),
    listen: async () => async () => undefined,
    close: async () => undefined,
  };
}

async function runTransaction<T>(actor: Actor, sql: Connections, work: (tx: Tx) => Promise<T>): Promise<T> {
  if ((await actor.pass('begin', ['lose'])) === 'lose') throw connectionLost();
  const connection: Connection = { isLost: false, isTransaction: true };
  let isLostAfter = false;
  let leave = actor.enter(connection);
  try {
    const value = await sql.begin(async (tx) => {
      leave();
      actor.isInTransaction = true;
      try {
        const made = await Promise.race([work(gated(actor, () => connection, tx as Tx)), actor.crashed]);
        const fault = await Promise.race([actor.pass('commit', ['lose', 'after']), actor.crashed]);
        if (fault === 'lose' || connection.isLost) throw connectionLost();
        isLostAfter = fault === 'after';
        return { made };
      } finally {
        actor.isInTransaction = false;
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
    leave(true);
  }
}
