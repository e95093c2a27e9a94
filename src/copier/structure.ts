/**
 * The first transaction of a copy in the target: roles, and everything that pg_dump puts before the rows. What comes
 * behind them is recorded in the same transaction, so that no later run needs the schema of the source again.
 */
import { dumpByWasm } from '../compute/schema-dump/wasm-dump.ts';
import { openWireSession } from '../compute/schema-dump/wire-session.ts';
import type { Facts } from './check.ts';
import { type Entry, entriesOf, stageOf, takeOwner, withOwner, withRoles } from './entries.ts';
import { CopyFailure, wordsOf } from './failure.ts';
import {
  addStep,
  addTable,
  createRecord,
  type JobRecord,
  recordSchema,
  type Stage,
  type TableRecord,
} from './record.ts';
import { makeRoles, readRoles } from './roles.ts';
import { type Place, reserve, type Session, type Sql } from './session.ts';
import type { Snapshot } from './snapshot.ts';
import { runEntry, scriptSettings } from './steps.ts';

const dumpLimits = { bytesMax: 512 * 1024 * 1024, timeoutMs: 600_000 };
/** Publications are those of the source, and what copies it has none of its tablespaces. */
const dumpArgs = [
  '--encoding=UTF8',
  '--no-publications',
  '--no-subscriptions',
  '--no-tablespaces',
  '--no-security-labels',
  `--exclude-schema=${recordSchema}`,
];

export interface StructureRequest {
  readonly source: Place;
  readonly target: Place;
  readonly snapshot: Snapshot;
  readonly sql: Sql;
  readonly found: Facts;
  /** What follows the changes of the source, if anything does. */
  readonly slot: string | null;
  readonly hasRoles: boolean;
}

export async function makeStructure(request: StructureRequest): Promise<JobRecord> {
  const { source, snapshot, found } = request;
  const tables = await tablesOf(snapshot.session);
  await lockTables(snapshot.session, tables);
  const plan = await readRoles(snapshot.session, found.targetUser);
  const before = entriesOf(await dumpSection(source, snapshot.id, 'pre-data')).map(takeOwner);
  const behind = entriesOf(await dumpSection(source, snapshot.id, 'post-data')).map(takeOwner);
  const owners = [...before, ...behind].flatMap((taken) => taken.owners);
  const renamed = (entry: Entry) => withRoles(entry, plan.names);
  const session = await reserve(request.sql, request.target);
  try {
    await session.unsafe(`BEGIN; ${scriptSettings}`);
    const notes = request.hasRoles ? [] : await makeRoles(session, plan);
    for (const { entry } of before) {
      const note = await runEntry(session, renamed(entry));
      if (note !== null) notes.push(note);
    }
    const steps = [
      ...behind.map(({ entry }) => ({ stage: stageOf(entry.kind), entry: renamed(entry) })),
      ...owners.map((entry) => ({ stage: 'owners' as const, entry: withOwner(entry, plan.names) })),
    ];
    if (found.largeObjects > 0) notes.push(`${found.largeObjects} large objects were left behind`);
    const { slot } = request;
    const job = {
      sourceId: found.sourceId,
      sourceName: nameOf(source),
      notes,
      slot,
      isFollowed: false,
      report: null,
    };
    await record(session, job, tables, steps);
    await session.unsafe('COMMIT; RESET ALL');
    return job;
  } catch (error) {
    await session.unsafe('ROLLBACK; RESET ALL').catch(() => undefined);
    throw error instanceof CopyFailure ? error : new CopyFailure(`the schema cannot be made: ${wordsOf(error)}`);
  } finally {
    session.release();
  }
}

async function record(
  session: Session,
  job: JobRecord,
  tables: readonly TableRecord[],
  steps: readonly { readonly stage: Stage; readonly entry: Entry }[],
): Promise<void> {
  await createRecord(session, job);
  for (const table of tables) await addTable(session, table);
  for (const [id, { stage, entry }] of steps.entries()) await addStep(session, stage, { id, ...entry });
}

const nameOf = ({ host, port, database }: Place) => `${host}:${port}/${database}`;

/** No schema changes under the copy. Whoever may not read a table hears of it here. */
async function lockTables(session: Session, tables: readonly TableRecord[]): Promise<void> {
  if (tables.length === 0) return;
  const names = tables.map(({ name }) => `ONLY ${name}`).join(', ');
  await session.unsafe(`LOCK TABLE ${names} IN ACCESS SHARE MODE`).catch((error) => {
    throw new CopyFailure(`the tables of the source cannot be read: ${wordsOf(error)}`);
  });
}

async function dumpSection(place: Place, snapshotId: string, section: 'pre-data' | 'post-data'): Promise<string> {
  try {
    const session = await openWireSession(place, place, place.options ?? '');
    return await dumpByWasm(session, dumpLimits, [`--section=${section}`, `--snapshot=${snapshotId}`, ...dumpArgs]);
  } catch (error) {
    throw new CopyFailure(`the schema of the source cannot be read: ${wordsOf(error)}`);
  }
}

export async function tablesOf(session: Sql | Session): Promise<readonly TableRecord[]> {
  const rows = await session<{ name: string; columns: string; bytes: string }[]>`
    SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, pg_catalog.pg_table_size(c.oid) AS bytes,
           (SELECT coalesce(json_agg(quote_ident(a.attname) ORDER BY a.attnum), '[]')::text
              FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') AS columns
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
       AND n.nspname <> ${recordSchema}
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
     ORDER BY c.oid`;
  return rows.map(({ name, columns, bytes }, id) => ({ id, name, columns: JSON.parse(columns), bytes: Number(bytes) }));
}
