/** The sessions of a server, as people see them: what each does, whom it waits for, and how one is ended. */
import type { ComputeAddress, ServerSession } from '../../lib/model.ts';
import { adminLogin, type Session, withSession } from './admin-session.ts';
import { janitorPattern } from './janitor.ts';
import { clientsOwn } from './work.ts';

/** Somebody waits for the answer, and a server that is too busy for it should not be asked more. */
const limits = { connectSeconds: 5, statementMs: 5_000 };

/** More than a person reads; the busiest come first. */
const sessionsMax = 500;
const queryLengthMax = 10_000;

/** As Postgres writes it for `%c` in a log: it tells a session from an earlier one with the same pid. */
const sessionId = (sql: Session) => sql`
  (to_hex(trunc(extract(epoch FROM backend_start))::bigint) || '.' || to_hex(pid))`;

/** Not those of the short-lived roles either that Catnap makes to read a schema, or to clear the way. */
const tenants = (sql: Session) => sql`(${clientsOwn(sql)} AND coalesce(usename !~ ${janitorPattern}, true))`;

export interface ServerLogin {
  readonly address: ComputeAddress;
  readonly adminSecret: string;
}

/** Without Catnap's own sessions. Asking counts as no work, and keeps no server awake. */
export function readSessions({ address, adminSecret }: ServerLogin): Promise<ServerSession[]> {
  const ask = async (sql: Session) => [
    ...(await sql<ServerSession[]>`
      SELECT ${sessionId(sql)} AS id, a.pid, usename AS role, datname AS database,
             nullif(application_name, '') AS "applicationName", backend_type AS kind, state,
             wait_event_type AS "waitType", wait_event AS "waitEvent", backend_start AS "startedAt",
             xact_start AS "transactionAt", query_start AS "queryAt", state_change AS "stateAt",
             left(nullif(query, ''), ${queryLengthMax}) AS query, leader_pid AS "leaderPid",
             CASE WHEN wait_event_type = 'Lock' THEN to_json(pg_blocking_pids(a.pid)) ELSE '[]' END AS "blockedBy",
             l.locktype AS "lockType", l.mode AS "lockMode", l.waitstart AS "waitingAt"
      FROM pg_stat_activity a
      LEFT JOIN LATERAL (
        SELECT k.locktype, k.mode, k.waitstart FROM pg_locks k WHERE k.pid = a.pid AND NOT k.granted LIMIT 1) l ON true
      WHERE ${tenants(sql)}
      ORDER BY state IS NOT DISTINCT FROM 'idle', coalesce(xact_start, query_start, backend_start), a.pid
      LIMIT ${sessionsMax}`),
  ];
  return withSession(address, adminLogin(adminSecret), ask, limits);
}

/** False if the server has no such session, or has none any more. */
export function signalSession(
  { address, adminSecret }: ServerLogin,
  id: string,
  how: 'cancel' | 'terminate',
): Promise<boolean> {
  const send = async (sql: Session) => {
    const signal = how === 'cancel' ? sql`pg_cancel_backend(pid)` : sql`pg_terminate_backend(pid)`;
    const sent = await sql`
      SELECT ${signal} FROM pg_stat_activity WHERE ${tenants(sql)} AND ${sessionId(sql)} = ${id}`;
    return sent.length > 0;
  };
  return withSession(address, adminLogin(adminSecret), send, limits);
}
