/**
 * Copies a database of any Postgres server into an empty one: roles, schema, rows, sequences, owners. Rows are read in
 * one snapshot; where the source permits logical replication, what is written there meanwhile follows. What has been
 * done is recorded in the target, in the transaction that does it, so that a copy that was interrupted goes on where it
 * was when it is called again with the same two databases.
 */
import { checkDatabases, type Facts } from './check.ts';
import { copyTables } from './data.ts';
import { CopyFailure } from './failure.ts';
import { finish } from './finish.ts';
import { follow } from './follow.ts';
import type { Report } from './progress.ts';
import {
  dropRecord,
  type FinishedCopy,
  type JobRecord,
  markFollowed,
  readJob,
  readTables,
  type TableRecord,
} from './record.ts';
import { beginReplication, dropReplication, laterMoment, slotNameOf, whyNotReplicated } from './replication.ts';
import { holdTarget, openPlace, type Place, parsePlace, reserve, type Sql } from './session.ts';
import { openSnapshot, type Snapshot } from './snapshot.ts';
import { runSteps } from './steps.ts';
import { makeStructure, tablesOf } from './structure.ts';

export const copyMethods = ['auto', 'replication', 'copy'] as const;

export interface CopyRequest {
  /** `postgresql://user:password@host:port/database`, of both. */
  readonly source: string;
  readonly target: string;
  /** Copies a database that has large objects, and leaves those behind. */
  readonly withoutLargeObjects?: boolean;
  /** A copy that fails is not taken up again: it leaves nothing in the source. */
  readonly isSingleTry?: boolean;
  /** Whether changes are followed; `auto`, the default: where the source permits it. A resumed copy keeps its own. */
  readonly method?: (typeof copyMethods)[number];
  /**
   * Called when the target has what the source has, where changes are followed; they are until it resolves. What was
   * committed in the source before that is in the target when the copy returns: let it resolve when nobody writes there
   * any more. Without it the copy ends as soon as it has caught up.
   */
  readonly whenCaughtUp?: () => Promise<void>;
  /** The name that the source database had when the copy began, if it has another one by now. */
  readonly knownAs?: string;
  /** The target has all roles already. */
  readonly hasRoles?: boolean;
  /** Leaves the record in the target, so that a call after the end gets the same report; `forgetCopy` removes it. */
  readonly keepsRecord?: boolean;
}

export interface CopyReport {
  readonly tables: number;
  readonly rows: number;
  readonly bytes: number;
  readonly method: 'replication' | 'copy';
  /** Whether an earlier run had begun it: by `copy`, tables are then from more than one moment of the source. */
  readonly isResumed: boolean;
  /** What did not come along, or differs, as sentences. */
  readonly notes: readonly string[];
}

interface Copying {
  readonly request: CopyRequest;
  readonly from: Place;
  readonly to: Place;
  readonly source: Sql;
  readonly target: Sql;
  readonly report: Report;
}

/** Throws `CopyFailure` with a sentence for people. In the phase `check` nothing is written. */
export async function copyDatabase(request: CopyRequest, report: Report = () => {}): Promise<CopyReport> {
  const from = parsePlace('source', request.source);
  const to = parsePlace('target', request.target);
  const source = openPlace(from);
  const target = openPlace(to);
  try {
    const letGo = await holdTarget(target, to);
    return await copy({ request, from, to, source, target, report })
      .catch(async (error) => {
        if (request.isSingleTry) await giveUp(source, target);
        throw error;
      })
      .finally(letGo);
  } finally {
    await Promise.all([source.end({ timeout: 5 }), target.end({ timeout: 5 })]);
  }
}

async function copy(copying: Copying): Promise<CopyReport> {
  const { request, from, to, source, target, report } = copying;
  report({ phase: 'check', name: from.database, done: 0, of: 1 });
  const found = await checkDatabases({ place: from, sql: source }, { place: to, sql: target }, request);
  const begun = await readJob(target);
  if (begun !== null) requireSameSource(begun, found);
  if (begun !== null && begun.report !== null) return reportOf(begun, begun.report, true);
  const job = begun === null ? await begin(copying, found) : await goOn(copying, begun);
  const notes = [...job.notes];
  notes.push(...(await runSteps(target, to, 'indexes', report)));
  if (job.slot !== null && !job.isFollowed) await followChanges(copying, job.slot);
  notes.push(...(await runSteps(target, to, 'views', report)));
  notes.push(...(await runSteps(target, to, 'rules', report)));
  report({ phase: 'finish', name: to.database, done: 0, of: 1 });
  if (job.slot !== null) await dropReplication(source, job.slot);
  const finished = await finish({ source, target, place: to, notes, keepsRecord: request.keepsRecord ?? false });
  return reportOf(job, finished, begun !== null);
}

function reportOf({ slot }: JobRecord, finished: FinishedCopy, isResumed: boolean): CopyReport {
  return { ...finished, method: slot === null ? 'copy' : 'replication', isResumed };
}

/** Removes the record of a copy that has kept it. Fine if there is none. */
export async function forgetCopy(url: string): Promise<void> {
  const place = parsePlace('target', url);
  const target = openPlace(place);
  try {
    const session = await reserve(target, place);
    await dropRecord(session);
    session.release();
  } finally {
    await target.end({ timeout: 5 });
  }
}

/** A slot that nobody reads would fill the disk of the source. */
async function giveUp(source: Sql, target: Sql): Promise<void> {
  const job = await readJob(target).catch(() => null);
  if (job !== null && job.slot !== null) await dropReplication(source, job.slot).catch(() => undefined);
}

/** Structure and rows are of the same moment. */
async function begin(copying: Copying, found: Facts): Promise<JobRecord> {
  const { request, from, to, source, target, report } = copying;
  const slot = await chooseSlot(request, source, slotNameOf(found.sourceId, to));
  const snapshot = slot === null ? await openSnapshot(source, from) : await beginReplication(source, from, slot);
  report({ phase: 'structure', name: from.database, done: 0, of: 1 });
  const { hasRoles = false } = request;
  const asked = { source: from, target: to, snapshot, sql: target, found, slot, hasRoles };
  const job = await makeStructure(asked).catch(async (error) => {
    await snapshot.close();
    // Nothing is left of the copy, and a slot that nobody reads would fill the disk of the source.
    if (slot !== null) await dropReplication(source, slot);
    throw error;
  });
  await copyRows(copying, snapshot);
  return job;
}

async function chooseSlot({ method = 'auto' }: CopyRequest, source: Sql, name: string): Promise<string | null> {
  if (method === 'copy') return null;
  const problem = await whyNotReplicated(source);
  if (problem === null) return name;
  if (method === 'auto') return null;
  throw new CopyFailure(`the source does not permit to follow its changes: ${problem}`);
}

async function goOn(copying: Copying, job: JobRecord): Promise<JobRecord> {
  const { from, source, target } = copying;
  if ((await readTables(target)).every(({ isCopied }) => isCopied)) return job;
  await copyRows(
    copying,
    job.slot === null ? await openSnapshot(source, from) : await laterMoment(source, from, job.slot),
  );
  return job;
}

async function copyRows({ target, to, report }: Copying, snapshot: Snapshot): Promise<void> {
  try {
    await copyTables(snapshot, target, to, report);
  } finally {
    await snapshot.close();
  }
}

async function followChanges({ request, source, target, to, report }: Copying, name: string): Promise<void> {
  const whenCaughtUp = async () => {
    await requireSameTables(source, target);
    await request.whenCaughtUp?.();
  };
  await follow({ source, target, place: to, name, whenCaughtUp, report });
  await requireSameTables(source, target);
  await markFollowed(target);
}

/** A table that was made meanwhile has nobody who would follow it: its rows would be missing without a word. */
async function requireSameTables(source: Sql, target: Sql): Promise<void> {
  const shape = ({ name, columns }: TableRecord) => `${name} (${columns.join(', ')})`;
  const before = new Set((await readTables(target)).map(shape));
  const now = new Set((await tablesOf(source)).map(shape));
  const changed = [...now].filter((one) => !before.has(one)).concat([...before].filter((one) => !now.has(one)));
  if (changed.length === 0) return;
  throw new CopyFailure(
    `tables were made, changed or dropped in the source since the copy began, which is not followed: ${changed[0]}`,
  );
}

function requireSameSource({ sourceId, sourceName }: JobRecord, found: Facts): void {
  if (sourceId === found.sourceId) return;
  throw new CopyFailure(
    `the target holds an unfinished copy of another database (${sourceName}): ` +
      'go on with that one, or make another database for this copy',
  );
}
