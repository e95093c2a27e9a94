/** Sessions of a compute on the wire. */
import type { ServerSession } from '../../lib/model.ts';
import { present } from './common.ts';

export function sessionView(session: ServerSession) {
  const { id, pid, kind, role, database, state, query, blockedBy, waitType, waitEvent, lockType, lockMode } = session;
  return {
    id,
    pid,
    kind,
    started_at: session.startedAt.toISOString(),
    blocked_by: [...blockedBy],
    ...present({
      role,
      database,
      state,
      query,
      application_name: session.applicationName,
      transaction_started_at: timeOf(session.transactionAt),
      query_started_at: timeOf(session.queryAt),
      state_changed_at: timeOf(session.stateAt),
      wait: waitType === null ? null : `${waitType}: ${waitEvent}`,
      lock: lockMode === null ? null : `${lockMode} on ${lockType}`,
      waiting_since: timeOf(session.waitingAt),
      leader_pid: session.leaderPid,
    }),
  };
}

const timeOf = (at: Date | null) => at?.toISOString() ?? null;
