/** What the history asks of the running system database: its position, a slot that keeps its log, and backups. */
import postgres from 'postgres';
import type { BackupEnd } from '../../compute/local/channel/host-calls.ts';
import { segmentBytes } from '../../compute/local/host/postgres/wal-segments.ts';
import { type LogPosition, lsnText } from '../../lib/moments.ts';

/** The server's slot, which keeps the log that is not copied yet. */
export const slotName = 'catnap_history';

export interface ServerPosition extends LogPosition {
  readonly timeline: number;
}

export type BackupStop = ServerPosition & BackupEnd;

export class HistorySession {
  readonly #sql: postgres.Sql;
  #slotAt = -1n;

  /** In the database `postgres`, where the login may hold backups. */
  constructor(connection: { readonly path: string; readonly username: string; readonly password: string }) {
    this.#sql = postgres({
      path: connection.path,
      username: connection.username,
      password: connection.password,
      database: 'postgres',
      max: 1,
      fetch_types: false,
      onnotice: () => undefined,
      connection: { application_name: 'catnap-history', statement_timeout: 600_000, idle_session_timeout: 0 },
    });
  }

  end(): Promise<void> {
    return this.#sql.end({ timeout: 5 });
  }

  /** Everything that was committed before `at` and is on the disk is before `lsn`. */
  async flushed(): Promise<ServerPosition> {
    const [found] = await this.#sql<{ at: string; lsn: string; segment: string }[]>`
      SELECT ${isoNow(this.#sql)} AS at, pg_current_wal_flush_lsn()::text AS lsn,
        pg_walfile_name(pg_current_wal_flush_lsn()) AS segment`;
    if (found === undefined) throw new Error('the server did not report its position');
    return { at: found.at, lsn: found.lsn, timeline: timelineOf(found.segment) };
  }

  /** A slot that has lost what it kept is of no use any more, and is made again. */
  async ensureSlot(): Promise<void> {
    const [found] = await this.#sql<{ isLost: boolean }[]>`
      SELECT coalesce(wal_status = 'lost', false) AS "isLost" FROM pg_replication_slots WHERE slot_name = ${slotName}`;
    if (found?.isLost === false) return;
    if (found?.isLost) await this.#sql`SELECT pg_drop_replication_slot(${slotName})`;
    await this.#sql`SELECT pg_create_physical_replication_slot(${slotName}, true)`;
    this.#slotAt = -1n;
  }

  async dropSlot(): Promise<void> {
    await this.#sql`
      SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
      WHERE slot_name = ${slotName} AND NOT active`;
  }

  /** To the beginning of the segment: the whole of it is needed as long as it grows. */
  async advanceSlot(copied: bigint): Promise<void> {
    const to = copied - (copied % segmentBytes);
    if (to === this.#slotAt) return;
    await this.#sql`
      SELECT pg_replication_slot_advance(slot_name, ${lsnText(to)}::pg_lsn) FROM pg_replication_slots
      WHERE slot_name = ${slotName} AND restart_lsn < ${lsnText(to)}::pg_lsn`;
    this.#slotAt = to;
  }

  async beginBackup(): Promise<void> {
    await this.#sql`SELECT pg_backup_start('catnap history', true)`;
  }

  async endBackup(): Promise<BackupStop> {
    const [end] = await this.#sql<{ at: string; lsn: string; label: string; lastSegment: string }[]>`
      SELECT ${isoNow(this.#sql)} AS at, lsn::text, labelfile AS label, pg_walfile_name(lsn) AS "lastSegment"
      FROM pg_backup_stop(false)`;
    const firstSegment = /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)$/m.exec(end?.label ?? '')?.[1];
    if (end === undefined || firstSegment === undefined) throw new Error('the server did not report its backup');
    return { ...end, firstSegment, timeline: timelineOf(firstSegment) };
  }
}

const timelineOf = (segment: string) => Number.parseInt(segment.slice(0, 8), 16);

/** The server's clock, by which a moment is later found in its log. */
const isoNow = (sql: postgres.Sql) =>
  sql`to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
