/**
 * Connections to the system database. Names are camelCase in TypeScript and snake_case in SQL; the change happens
 * here. Only column names are changed: keys inside jsonb stay as they are, because tenants choose some of them.
 */
import postgres from 'postgres';
import type { TlsMode } from '../lib/client-tls.ts';
import { type Host, sentAtOnce, steady } from '../lib/steady-socket.ts';

// A type alias, not an interface: the library wants an index signature.
type CustomTypes = { bigint: number };

/** Statements run on this, inside or outside a transaction. */
export type Sql = postgres.ISql<CustomTypes>;
/** Proof of an open transaction, for functions that must not run outside one. */
export type Tx = postgres.TransactionSql<CustomTypes>;
export type JsonValue = postgres.JSONValue;
/** A piece of a statement. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

export interface DatabaseOptions {
  /** URL of an external database; otherwise the fields below. */
  readonly url?: string;
  readonly path?: string;
  readonly username?: string;
  readonly password?: string;
  readonly database?: string;
}

export interface Database {
  readonly sql: Sql;
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Calls back with each payload, and with '' whenever the subscription is renewed: something may have been missed. */
  listen(channel: string, onMessage: (payload: string) => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** All of Catnap's tables live in this schema, so that an external database can hold other things too. */
export const schemaName = 'catnap';

/** Less than a client waits for a wake. Commands do nothing but SQL in their transactions. */
const idleInTransactionMs = 15_000;

export interface PoolSettings {
  readonly poolSize: number;
  readonly name: string;
  /** Connections that nobody has used for this long are closed; 0 keeps them for as long as they live. */
  readonly idleSeconds?: number;
  /**
   * Each connection is closed at this age. The driver takes its connections in turn, so that a few statements a second
   * keep all of them in use that a busy moment has opened: this is what makes a pool small again.
   */
  readonly lifeSeconds?: number;
  /** Keeps one connection open however long nobody uses it, so that the first statement waits for none. */
  readonly keepsOne?: boolean;
  /** Without it a crash of the database may lose its latest commits. */
  readonly waitForDisk?: boolean;
  /** Called when any of its connections has ended. */
  readonly onClose?: () => void;
}

const usualIdleSeconds = 30;

export function openDatabase(options: DatabaseOptions, settings: PoolSettings): Database {
  const { idleSeconds = usualIdleSeconds, keepsOne = false } = settings;
  const sql = connect(options, settings.poolSize, settings.name, settings);
  // A statement in time keeps the one that it uses; those that are left over have been idle for longer.
  const keeping = keepsOne ? setInterval(() => void sql`select`.catch(() => {}), idleSeconds * 750) : null;
  keeping?.unref();
  return {
    sql,
    transaction: (work) => sql.begin(work) as Promise<Awaited<ReturnType<typeof work>>>,
    listen: async (channel, onMessage) => {
      const subscription = await sql.listen(channel, onMessage, () => onMessage(''));
      return () => subscription.unlisten();
    },
    close: () => {
      if (keeping !== null) clearInterval(keeping);
      return sql.end({ timeout: 5 });
    },
  };
}

/**
 * Seconds until the next try to connect. The driver counts failures of all connections of a pool together, and would
 * wait up to 20 s after a few requests have failed: the database is back long before that.
 */
const backoff = (failures: number) => Math.min(0.2, 0.01 * 2 ** failures);

/** What the URL asks for, in the words of other drivers too. */
function tlsMode({ url = '' }: DatabaseOptions): TlsMode {
  const [, mode = 'disable'] = /[?&]ssl(?:mode)?=([^&]*)/.exec(url) ?? [];
  if (mode === 'prefer') return mode;
  if (['disable', 'false'].includes(mode)) return 'disable';
  return ['require', 'allow'].includes(mode) ? 'require' : 'verify-full';
}

/** Empty unless the URL names several. */
function hostsIn({ url = '' }: DatabaseOptions): readonly Host[] {
  const [, names = ''] = /^[^/]*\/\/(?:[^/?]*@)?([^/?]*)/.exec(url) ?? [];
  if (!names.includes(',')) return [];
  return names.split(',').map((name) => {
    const [host = '', port = '5432'] = name.split(':');
    return { host, port: Number(port) };
  });
}

export function connect(
  options: DatabaseOptions,
  poolSize: number,
  name: string,
  more: Omit<PoolSettings, 'poolSize' | 'name' | 'keepsOne'> = {},
) {
  const { idleSeconds = usualIdleSeconds, lifeSeconds, waitForDisk = true, onClose } = more;
  const settings: postgres.Options<{ bigint: postgres.PostgresType<number> }> = {
    max: poolSize,
    ...(idleSeconds > 0 && { idle_timeout: idleSeconds }),
    ...(lifeSeconds !== undefined && { max_lifetime: lifeSeconds }),
    connect_timeout: 10,
    backoff,
    onnotice: () => {},
    ...(onClose !== undefined && { onclose: onClose }),
    ...steady({ tls: tlsMode(options), hosts: hostsIn(options) }),
    transform: { column: { from: postgres.toCamel, to: postgres.fromCamel } },
    // Sequences and sizes here stay far below 2^53.
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    connection: {
      application_name: name,
      search_path: schemaName.padEnd(sentAtOnce),
      statement_timeout: 30_000,
      // A process that stalls in the middle of a command must not block a project for long.
      idle_in_transaction_session_timeout: idleInTransactionMs,
      ...(!waitForDisk && { synchronous_commit: 'off' }),
    },
    ...(options.path === undefined ? {} : { path: options.path }),
    ...(options.username === undefined ? {} : { username: options.username }),
    ...(options.password === undefined ? {} : { password: options.password }),
    ...(options.database === undefined ? {} : { database: options.database }),
  };
  return options.url === undefined ? postgres(settings) : postgres(options.url, settings);
}

/** The first row, or undefined. */
export function first<T>(rows: readonly T[]): T | undefined {
  return rows[0];
}

/** The one row that a statement with RETURNING must give. */
export function one<T>(rows: readonly T[]): T {
  const row = rows[0];
  if (row === undefined) throw new Error('BUG: the statement returned no row');
  return row;
}

type ColumnValue = string | number | boolean | Date | Uint8Array | null | undefined | postgres.Parameter;

/** `set column = value` for each key that is given, and `updated_at`; keys with undefined are left as they are. */
export function assignments(sql: Sql, change: { readonly [column: string]: ColumnValue }) {
  const given = Object.entries(change).flatMap(([column, value]) =>
    value === undefined ? [] : [sql`, ${sql(column)} = ${value}`],
  );
  return sql`set updated_at = now() ${given.length === 0 ? sql`` : given}`;
}

/** A jsonb parameter from a plain readonly object. */
export function json(sql: Sql, value: object) {
  return sql.json(value as postgres.JSONValue);
}
