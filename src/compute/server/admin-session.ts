/** Short sessions in a tenant's server, for Catnap's own login and for the helper roles that Catnap makes there. */

import postgres from 'postgres';
import type { ComputeAddress } from '../../lib/model.ts';
import { sentAtOnce, steady } from '../../lib/steady-socket.ts';
import { adminDatabase, adminRole } from '../interface/own-logins.ts';
import { isFinalState, ServerRefusalError } from '../interface/refusal.ts';
import { asOptions, ownSettings, type SessionSettings, settingsAgainst } from './own-settings.ts';

export type Session = postgres.Sql;

export interface Login {
  readonly username: string;
  readonly password: string;
  readonly database: string;
}

/** A login whose session no setting of a tenant's can reach. */
export interface OwnLogin extends Login {
  readonly settings: SessionSettings;
}

/** Runs work in another session of the same server. */
export type EnterAs = <T>(login: OwnLogin, work: (sql: Session) => Promise<T>) => Promise<T>;

/** Tenants cannot attach settings to Catnap's own database. */
export const adminLogin = (password: string): OwnLogin => ({
  username: adminRole,
  database: adminDatabase,
  password,
  settings: ownSettings,
});

/** For a session in a tenant's database; `sql` is one in Catnap's own. */
export async function shielded(sql: Session, login: Login): Promise<OwnLogin> {
  return { ...login, settings: await settingsAgainst(sql, login.database, login.username) };
}

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
  login: OwnLogin,
  work: (sql: Session) => Promise<T>,
  options: SessionOptions = {},
): Promise<T> {
  return useSession(openSession(address, login, options), work);
}

/** Ends the session after the work. */
export async function useSession<T>(sql: Session, work: (sql: Session) => Promise<T>): Promise<T> {
  try {
    return await work(sql);
  } catch (error) {
    throw asRefusal(error) ?? error;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** As `withSession`, for a server that is about to stop and ends it too: the caller does not wait for its end. */
export async function withLastSession<T>(
  address: ComputeAddress,
  login: OwnLogin,
  work: (sql: Session) => Promise<T>,
): Promise<T> {
  const sql = openSession(address, login);
  try {
    return await work(sql);
  } catch (error) {
    throw asRefusal(error) ?? error;
  } finally {
    void sql.end({ timeout: 1 }).catch(() => undefined);
  }
}

/** For several uses. Connects at the first one; the caller ends the session. */
export function openSession(address: ComputeAddress, login: OwnLogin, options: SessionOptions = {}): Session {
  const { connectSeconds = 5, statementMs = 60_000, idleSeconds, prepare = false } = options;
  const { username, password, database, settings } = login;
  return postgres({
    ...(address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port }),
    username,
    password,
    database,
    ...steady(),
    max: 1,
    connect_timeout: connectSeconds,
    ...(idleSeconds === undefined ? {} : { idle_timeout: idleSeconds }),
    // Neither type lookups nor named statements: most sessions run one statement and end.
    fetch_types: false,
    prepare,
    onnotice: () => undefined,
    connection: {
      application_name: 'catnap',
      // As options, because the client library sends no parameter whose value is empty.
      options: asOptions({ ...settings, statement_timeout: String(statementMs), lock_timeout: '20s' }).padEnd(
        sentAtOnce,
      ),
    },
  });
}

/** For callers that would try again: says which failures never pass. */
function asRefusal(error: unknown): ServerRefusalError | null {
  if (!(error instanceof postgres.PostgresError) || !isFinalState(error.code)) return null;
  return new ServerRefusalError(error.message, error.code);
}

export function sqlState(error: unknown): string | null {
  if (error instanceof ServerRefusalError) return error.sqlState;
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
