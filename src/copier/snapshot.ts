/** One moment of the source: a transaction that sees nothing later, and lets other sessions see the same. */
import { CopyFailure, wordsOf } from './failure.ts';
import { type Place, reserve, type Session, type Sql } from './session.ts';

export interface Snapshot {
  /** Reads in it. */
  readonly session: Session;
  /** For `SET TRANSACTION SNAPSHOT` elsewhere, while this one is open. */
  readonly id: string;
  /** What commits at or behind this position of the log is not in it; null where nobody needs to know. */
  readonly lsn: string | null;
  close(): Promise<void>;
}

/** `exported` is the moment of another session. */
export async function openSnapshot(sql: Sql, place: Place, exported?: string): Promise<Snapshot> {
  const session = await reserve(sql, place);
  const close = async () => {
    await session.unsafe('ROLLBACK').catch(() => undefined);
    session.release();
  };
  try {
    await session.unsafe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    if (exported !== undefined) await session.unsafe(`SET TRANSACTION SNAPSHOT '${exported}'`);
    const [row] = await session`SELECT pg_catalog.pg_export_snapshot() AS id`;
    return { session, id: String(row?.id), lsn: null, close };
  } catch (error) {
    await close();
    throw new CopyFailure(`the source gives no snapshot: ${wordsOf(error)}`);
  }
}
