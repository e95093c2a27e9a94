/** Connections to the two servers of a copy: what URLs may say, and settings under which values stay what they are. */
import postgres from 'postgres';
import { type TlsMode, tlsModes } from '../lib/client-tls.ts';
import { steady } from '../lib/steady-socket.ts';
import { CopyFailure, WrongUrl, wordsOf } from './failure.ts';

export type Sql = postgres.Sql;
/** A connection of its own, or a transaction. */
export type Session = postgres.ReservedSql | postgres.TransactionSql;

export type Side = 'source' | 'target';

export interface Place {
  readonly side: Side;
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly database: string;
  readonly tls: TlsMode;
  /** As in the URL: some servers find the database by them. */
  readonly options: string | undefined;
}

const connectSeconds = 30;
/** Under these a value that one server prints is the value that the other one reads. */
const exactValues =
  "SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET extra_float_digits = 3; SET row_security = off";
/** A copy takes as long as it takes. */
const patience = "SET statement_timeout = 0; SET lock_timeout = '60s'; SET idle_in_transaction_session_timeout = 0";

/** Throws unless it is a URL that says which database; the password never gets into the message. */
export function parsePlace(side: Side, text: string): Place {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === '' || url.pathname.length < 2) {
    throw new WrongUrl(
      `the URL of the ${side} must have the form postgresql://user:password@host:port/database?sslmode=require`,
    );
  }
  const tls = tlsModes.find((mode) => mode === (url.searchParams.get('sslmode') ?? 'prefer'));
  if (tls === undefined) {
    throw new WrongUrl(`sslmode in the URL of the ${side} must be one of ${tlsModes.join(', ')}`);
  }
  const database = decodeURIComponent(url.pathname.slice(1));
  return {
    side,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || 5432),
    username: decodeURIComponent(url.username) || database,
    password: decodeURIComponent(url.password),
    database,
    tls,
    options: url.searchParams.get('options') ?? undefined,
  };
}

/** Connects at the first use. `replication` opens a walsender, which takes replication commands beside SQL. */
export function openPlace(place: Place, { replication = false }: { readonly replication?: boolean } = {}): Sql {
  const { host, port, username, password, database, tls, options } = place;
  return postgres({
    host,
    port,
    username,
    password,
    database,
    ...steady({ tls }),
    max: replication ? 1 : 4,
    connect_timeout: connectSeconds,
    max_lifetime: null,
    // Nothing is prepared: most statements run once, and poolers between would mind.
    prepare: false,
    // Without them the library never hands out a connection that `reserve` has opened.
    fetch_types: !replication,
    onnotice: () => undefined,
    connection: {
      application_name: 'catnap import',
      ...(options !== undefined && { options }),
      ...(replication && { replication: 'database' }),
    },
  });
}

/** A connection that keeps its settings, until it is released. */
export async function reserve(sql: Sql, { side }: Pick<Place, 'side'>): Promise<postgres.ReservedSql> {
  const session = await sql.reserve().catch((error) => {
    throw new CopyFailure(`the ${side} cannot be reached: ${wordsOf(error)}`);
  });
  await session.unsafe(`${exactValues}; ${patience}`);
  return session;
}

/** Work in one database. Throws `CopyFailure` whatever the server says. */
export async function inPlace<T>(
  side: Side,
  url: string,
  work: (session: Session, sql: Sql) => Promise<T>,
): Promise<T> {
  const place = parsePlace(side, url);
  const sql = openPlace(place);
  try {
    const session = await reserve(sql, place);
    try {
      return await work(session, sql);
    } finally {
      session.release();
    }
  } catch (error) {
    throw error instanceof CopyFailure ? error : new CopyFailure(`the ${side} refuses: ${wordsOf(error)}`);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Any number that nobody else has. */
const copyKey = 7_070_005;

/** Two copies at once would bring every row twice. Returns what ends the hold; the end of the process does too. */
export async function holdTarget(sql: Sql, place: Place): Promise<() => void> {
  const session = await reserve(sql, place);
  const [row] = await session`SELECT pg_catalog.pg_try_advisory_lock(${copyKey}) AS "isHeld"`;
  if (row?.isHeld === true) return () => session.release();
  session.release();
  throw new CopyFailure('another copy into this database is under way');
}
