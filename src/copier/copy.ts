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
import { type JobRecord, markFollowed, readJob, readTables } from './record.ts';
import { beginReplication, dropReplication, laterMoment, slotNameOf, whyNotReplicated } from './replication.ts';
import { holdTarget, openPlace, type Place, parsePlace, type Sql } from './session.ts';
import { openSnapshot, type Snapshot } from './snapshot.ts';
import { runSteps } from './steps.ts';
import { makeStructure } from './structure.ts';

export const copyMethods = ['auto', 'replication', 'copy'] as const;

export interface CopyRequest {
  /** `postgresql://user:password@host:port/database`, of both. */
  readonly source: string;
  readonly target: string;
  /** Copies a database that has large objects, and leaves those behind. */
  readonly withoutLargeObjects?: boolean;
  /** Roles of the same name stand for each other, and the caller sees to their passwords: no note about either. */
  readonly sharesRoles?: boolean;
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
  const job = begun === null ? await begin(copying, found) : await goOn(copying, begun);
  const notes = [...job.notes];
  notes.push(...(await runSteps(target, to, 'indexes', report)));
  if (job.slot !== null && !job.isFollowed) await followChanges(copying, job.slot);
  notes.push(...(await runSteps(target, to, 'views', report)));
  notes.push(...(await runSteps(target, to, 'rules', report)));
  report({ phase: 'finish', name: to.database, done: 0, of: 1 });
  if (job.slot !== null) await dropReplication(source, job.slot);
  const { notes: last, ...totals } = await finish(source, target, to);
  const method = job.slot === null ? 'copy' : 'replication';
  return { ...totals, method, isResumed: begun !== null, notes: [...notes, ...last] };
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
  const { sharesRoles = false } = request;
  const asked = { source: from, target: to, snapshot, sql: target, found, slot, sharesRoles };
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
  const whenCaughtUp = request.whenCaughtUp ?? (async () => {});
  await follow({ source, target, place: to, name, whenCaughtUp, report });
  await markFollowed(target);
}

function requireSameSource({ sourceId, sourceName }: JobRecord, found: Facts): void {
  if (sourceId === found.sourceId) return;
  throw new CopyFailure(
    `the target holds an unfinished copy of another database (${sourceName}): ` +
      'go on with that one, or make another database for this copy',
  );
}
