/**
 * What the history of a branch asks of its running server: to keep the log that is not copied yet, and how far the log
 * has reached on disk. Runs in sessions of Catnap's own login; every function can be repeated.
 */
import { historySlot } from '../interface/own-logins.ts';
import type { Session } from './admin-session.ts';

export interface LogReached {
  readonly timeline: number;
  readonly lsn: string;
  readonly at: string;
}

/** A slot keeps the log from the last checkpoint on; `max_slot_wal_keep_size` bounds how much. */
export const keepLogStatement = `
  SELECT pg_create_physical_replication_slot('${historySlot}', true)
  WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '${historySlot}')`;

export async function keepLogForHistory(sql: Session): Promise<void> {
  await sql.unsafe(keepLogStatement);
}

/** The time is read first: whatever was on disk by then is before the position. */
export async function readLogEnd(sql: Session): Promise<LogReached> {
  const [found] = await sql<LogReached[]>`
    WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
         reached AS MATERIALIZED (SELECT at, pg_current_wal_flush_lsn() AS lsn FROM now)
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at, lsn::text AS lsn,
           ('x' || substr(pg_walfile_name(lsn), 1, 8))::bit(32)::int AS timeline
    FROM reached`;
  if (!found) throw new Error('the server did not report how far its log has reached');
  return found;
}

/** Writes a commit record, so that recovery to any earlier time has one to stop at; it is on disk when this returns. */
export async function writeCommit(sql: Session): Promise<void> {
  await sql`SELECT pg_logical_emit_message(true, 'catnap', '')`;
}

/** What is before this position may be reused. A slot that has lost its log is made anew. */
export async function releaseLog(sql: Session, lsn: string): Promise<void> {
  const [slot] = await sql<{ isLost: boolean }[]>`
    SELECT restart_lsn IS NULL OR wal_status = 'lost' AS "isLost" FROM pg_replication_slots
    WHERE slot_name = ${historySlot}`;
  if (slot?.isLost) await sql`SELECT pg_drop_replication_slot(${historySlot})`;
  if (slot?.isLost !== false) await keepLogForHistory(sql);
  await sql`
    SELECT pg_replication_slot_advance(${historySlot}, ${lsn}) FROM pg_replication_slots
    WHERE slot_name = ${historySlot} AND restart_lsn < ${lsn}::pg_lsn`;
}
