/** Short sessions in a tenant's server, for Catnap's own login and for the helper roles that Catnap makes there. */

import postgres from 'postgres';
import type { ComputeAddress } from '../../lib/model.ts';
import { adminDatabase, adminRole } from '../interface/own-logins.ts';

export type Session = postgres.Sql;

export interface Login {
  readonly username: string;
  readonly password: string;
  readonly database: string;
}

/** Runs work in another session of the same server. */
export type EnterAs = <T>(login: Login, work: (sql: Session) => Promise<T>) => Promise<T>;

export const adminLogin = (password: string): Login => ({
  username: adminRole,
  database: adminDatabase,
  password,
});

export interface SessionOptions {
  readonly connectSeconds?: number;
  readonly statementMs?: number;
  /** Closes its connection after this long without use; the next use opens it again. */
  readonly idleSeconds?: number;
  /** For a session that runs the same statement again and again. */
  readonly prepare?: boolean;
}

export async function withSession<T>(
  address: ComputeAddress,
  login: Login,
  work: (sql: Session) => Promise<T>,
  options: SessionOptions = {},
): Promise<T> {
  const sql = openSession(address, login, options);
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** For several uses. Connects at the first one; the caller ends the session. */
export function openSession(address: ComputeAddress, login: Login, options: SessionOptions = {}): Session {
  const { connectSeconds = 5, statementMs = 60_000, idleSeconds, prepare = false } = options;
  return postgres({
    ...(address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port }),
    ...login,
    max: 1,
    connect_timeout: connectSeconds,
    ...(idleSeconds === undefined ? {} : { idle_timeout: idleSeconds }),
    // Neither type lookups nor named statements: most sessions run one statement and end.
    fetch_types: false,
    prepare,
    onnotice: () => undefined,
    connection: {
      application_name: 'catnap',
      // Makes sure that no unqualified name refers to something that a tenant defined.
      search_path: 'pg_catalog',
      statement_timeout: statementMs,
      // An owner may have made these stricter for the whole server.
      default_transaction_read_only: false,
      lock_timeout: 20_000,
    },
  });
}

export function sqlState(error: unknown): string | null {
  return error instanceof postgres.PostgresError ? error.code : null;
}

/** The server refused the password; false for a server that is absent or not ready. */
export const isRefused = (error: unknown) => sqlState(error) === '28P01';

/** The server has no room for another session; also for a limit that an owner has set. */
export const isFull = (error: unknown) => sqlState(error) === '53300';

/** Nothing answers yet, or not at the moment: worth asking again. */
export function isNotReady(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return (
    ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAGAIN'].includes(code) ||
    ['CONNECT_TIMEOUT', 'CONNECTION_CLOSED', 'CONNECTION_ENDED', 'CONNECTION_DESTROYED'].includes(code) ||
    ['57P01', '57P02', '57P03', '53300'].includes(code)
  );
}
