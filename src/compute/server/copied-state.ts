/** What a running server holds while it is copied, and whether that is exactly what the copy holds. */
import type { ServerCatalog } from '../../lib/model.ts';
import type { Session } from './admin-session.ts';
import { readCatalog } from './configure.ts';
import { readSize } from './work.ts';

export interface SeenSource {
  readonly catalog: ServerCatalog;
  readonly bytes: number;
  /** Null when a transaction that had written something was still open. */
  readonly calmAt: string | null;
}

export async function observeSource(sql: Session): Promise<SeenSource> {
  const { oldest, last } = await writesSeen(sql);
  return { catalog: await readCatalog(sql), bytes: await readSize(sql), calmAt: oldest === last ? last : null };
}

/** After the copy: whether nothing was written between the reading and now. */
export async function isStillCalm(sql: Session, { calmAt }: SeenSource): Promise<boolean> {
  return calmAt !== null && (await writesSeen(sql)).last === calmAt;
}

/**
 * The server's position in the sequence of writing transactions: the oldest one still open, and the one after the last
 * that ended. While both are equal and do not change, no writing transaction has ended; the copy must not hold one that
 * ends later.
 */
async function writesSeen(sql: Session): Promise<{ oldest: string; last: string }> {
  const [seen] = await sql<{ oldest: string; last: string }[]>`
    SELECT pg_snapshot_xmin(s)::text AS oldest, pg_snapshot_xmax(s)::text AS last FROM pg_current_snapshot() s`;
  if (!seen) throw new Error('the server did not report its snapshot');
  return seen;
}
