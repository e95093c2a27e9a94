/**
 * Takes a snapshot: a copy of a branch's directory under the snapshot's own id, which nothing serves. A branch that
 * sleeps is not woken, and one that is awake keeps serving. A snapshot that cannot be taken is removed again; its
 * operation says why.
 */
import type { BranchCopy } from '../compute/interface/driver.ts';
import { recordCatalog } from '../core/catalog.ts';
import { catalogOfCopy } from '../core/catalog-of-copy.ts';
import { type CatalogSnapshot, takeCatalogSnapshot } from '../core/catalog-snapshot.ts';
import { commandScope } from '../core/context.ts';
import { dataOf, queueSnapshotDeletion, type Snapshot } from '../core/snapshot.ts';
import { selectBranchInAnyState, updateLogicalSize } from '../db/branches.ts';
import type { ProjectRow } from '../db/projects.ts';
import { deleteSnapshotRow, selectSnapshotInAnyState, updateSnapshot } from '../db/snapshots.ts';
import { asSnapshotId } from '../lib/ids.ts';
import { copyPast, type Past, pastOf, readSource } from './copy-source.ts';
import {
  abandon,
  abandonIfHopeless,
  done,
  goto,
  type Job,
  nothingToUndo,
  type Step,
  type StepContext,
  skip,
  wait,
} from './step.ts';
import { findProject, tenantRef } from './target.ts';

const sourceStartsMs = 50;

interface SnapshotTarget {
  readonly project: ProjectRow;
  readonly snapshot: Snapshot;
}

export async function findSnapshot(context: StepContext): Promise<SnapshotTarget | undefined> {
  const { snapshot: id } = context.operation.state;
  if (typeof id !== 'string') throw new Error('BUG: the operation has no snapshot');
  const [project, snapshot] = await Promise.all([
    findProject(context),
    selectSnapshotInAnyState(context.core.database.sql, asSnapshotId(id)),
  ]);
  return project === undefined || snapshot === undefined ? undefined : { project, snapshot };
}

/** The rows are read before the copy is made: what is dropped meanwhile is still in the copy. */
const readSourceState: Step = async (context) => {
  const target = await findSnapshot(context);
  if (target === undefined) return skip('the snapshot is gone');
  const { sourceBranchId } = target.snapshot;
  const source = await selectBranchInAnyState(context.core.database.sql, sourceBranchId);
  // A branch that is to be restored later is `resetting` already, and still has the data that was asked for.
  if (source === undefined || source.currentState === 'init') return abandon('the branch has no data');
  const seen = pastOf(context) === null ? await readSource(context, sourceBranchId) : 'asleep';
  if (seen === 'starting') return wait(sourceStartsMs);
  return goto('copy', async (tx) => {
    if (seen !== 'asleep') {
      await recordCatalog(tx, sourceBranchId, { roles: [], databases: [] }, seen.catalog);
      if (seen.bytes !== null) await updateLogicalSize(tx, sourceBranchId, seen.bytes);
    }
    const rows = await takeCatalogSnapshot(tx, sourceBranchId);
    const size = seen === 'asleep' ? source.logicalSize : seen.bytes;
    return { catalog: rows, logical_size: size, read_at: context.core.clock.now().toISOString() };
  });
};

const copy: Step = async (context) => {
  const target = await findSnapshot(context);
  if (target === undefined) return skip('the snapshot is gone');
  const { project, snapshot } = target;
  const past = pastOf(context);
  const ref = tenantRef(project);
  return abandonIfHopeless(async () => {
    const made =
      past === null
        ? await copyHead(context, target)
        : await copyPast(context, { project, ref }, dataOf(snapshot.id), past);
    return done(async (tx) => {
      await updateSnapshot(tx, snapshot.id, { currentState: 'ready', ...described(context, made, past) });
    });
  });
};

function copyHead({ driver }: StepContext, { project, snapshot }: SnapshotTarget): Promise<BranchCopy> {
  const source = { kind: 'branch', branchId: snapshot.sourceBranchId } as const;
  const { pgVersion } = project;
  return driver.createBranch({ ...tenantRef(project), branchId: dataOf(snapshot.id), pgVersion, source });
}

/** What is known of the copy: how it was made, and which moment, roles and databases it holds. */
function described({ operation, core }: StepContext, { receipt, source }: BranchCopy, past: Past | null) {
  const { catalog, logical_size: size, read_at: readAt } = operation.state;
  const rows = catalog as CatalogSnapshot;
  const held = source === null ? rows : catalogOfCopy(rows, source.catalog, past === null ? 'head' : 'past');
  if (past !== null) {
    const { moment } = past;
    const at = moment.kind === 'lsn' ? { lsn: moment.lsn } : { lsn: receipt.lsn, takenAt: new Date(moment.at) };
    return { receipt, catalog: held, logicalSize: source?.bytes ?? null, ...at };
  }
  // A server that runs writes until the copy ends; a branch that sleeps was complete when it was read.
  const takenAt = source === null ? new Date(String(readAt)) : core.clock.now();
  const logicalSize = source?.bytes ?? (typeof size === 'number' ? size : null);
  return { receipt, catalog: held, logicalSize, lsn: receipt.lsn, takenAt };
}

/** Nothing could restore it, so it does not stay in the list. */
const giveUp: Job['giveUp'] = async (tx, { operation, core }) => {
  const snapshot = await selectSnapshotInAnyState(tx, asSnapshotId(String(operation.state.snapshot)));
  if (snapshot?.deletingAt === null) await queueSnapshotDeletion(commandScope(core, tx), snapshot);
};

export const createSnapshot: Job = { steps: { read_source: readSourceState, copy }, giveUp };

const remove: Step = async (context) => {
  const target = await findSnapshot(context);
  if (target === undefined) return skip('the snapshot is gone');
  const { project, snapshot } = target;
  await context.driver.removeBranch({ ...tenantRef(project), branchId: dataOf(snapshot.id) });
  return done(async (tx) => {
    await deleteSnapshotRow(tx, snapshot.id);
  });
};

export const deleteSnapshot: Job = { steps: { remove }, giveUp: nothingToUndo };
