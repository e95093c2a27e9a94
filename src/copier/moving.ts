/** What `catnap move` needs of the two servers beside copies and roles: what stands against a move, and its pauses. */
import { type CopyReport, copyDatabase } from './copy.ts';
import { CopyFailure, CopyPaused } from './failure.ts';
import type { Report } from './progress.ts';
import { dropReplication, whyNotReplicated, whyTablesNotReplicated } from './replication.ts';
import { inPlace } from './session.ts';

export interface MoveFacts {
  readonly bytes: number;
  /** The end of a sentence; null if changes can be followed. */
  readonly whyNotReplicated: string | null;
  /** As if the server did permit it. */
  readonly whyTablesNotReplicated: string | null;
  readonly largeObjects: number;
  /** They write without a session that could be ended. */
  readonly subscriptions: readonly string[];
  readonly publications: readonly string[];
  /** Logical replication slots of others. */
  readonly slots: readonly string[];
}

export async function inspectDatabase(url: string): Promise<MoveFacts> {
  return inPlace('source', url, async (session, sql) => {
    const [row] = await session<
      (Omit<MoveFacts, 'bytes' | 'whyNotReplicated' | 'whyTablesNotReplicated'> & { bytes: string })[]
    >`
      SELECT pg_catalog.pg_database_size(current_database()) AS bytes,
             (SELECT count(*)::int FROM pg_catalog.pg_largeobject_metadata) AS "largeObjects",
             ARRAY(SELECT subname::text FROM pg_catalog.pg_subscription JOIN pg_catalog.pg_database d ON d.oid = subdbid
                    WHERE d.datname = current_database() AND subenabled ORDER BY 1) AS subscriptions,
             ARRAY(SELECT pubname::text FROM pg_catalog.pg_publication
                    WHERE pubname !~ '^catnap_import_' ORDER BY 1) AS publications,
             ARRAY(SELECT slot_name::text FROM pg_catalog.pg_replication_slots
                    WHERE database = current_database() AND slot_name !~ '^catnap_import_' ORDER BY 1) AS slots`;
    if (row === undefined) throw new CopyFailure('the source does not answer');
    return {
      ...row,
      bytes: Number(row.bytes),
      whyNotReplicated: await whyNotReplicated(sql),
      whyTablesNotReplicated: await whyTablesNotReplicated(sql),
    };
  });
}

export interface MoveCopyRequest {
  readonly source: string;
  readonly target: string;
  /** The name of the source database before it was closed to others, if it is. */
  readonly knownAs?: string;
  readonly method: 'replication' | 'copy';
  readonly withoutLargeObjects: boolean;
  /** Called when the target has what the source has; the copy pauses when it resolves. Without it, it is finished. */
  readonly untilPause?: () => Promise<void>;
}

/** Null where it has paused. */
export async function copyForMove(request: MoveCopyRequest, report: Report): Promise<CopyReport | null> {
  const { untilPause, ...others } = request;
  const whenCaughtUp = async () => {
    await untilPause?.();
    if (untilPause !== undefined) throw new CopyPaused('paused');
  };
  return copyDatabase({ ...others, whenCaughtUp, hasRoles: true, keepsRecord: true }, report).catch((error) => {
    if (error instanceof CopyPaused) return null;
    throw error;
  });
}

/** Ends what a copy that is given up has in the source: its slot, for which the source keeps its log. */
export async function abandonCopy(url: string): Promise<void> {
  await inPlace('source', url, async (session, sql) => {
    const slots = await session<{ name: string }[]>`
      SELECT slot_name::text AS name FROM pg_catalog.pg_replication_slots
       WHERE database = current_database() AND slot_name ~ '^catnap_import_'
      UNION SELECT pubname::text FROM pg_catalog.pg_publication WHERE pubname ~ '^catnap_import_'`;
    for (const { name } of slots) await dropReplication(sql, name);
  });
}
