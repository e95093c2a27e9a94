/**
 * Takes a snapshot: a copy of a branch's directory under the snapshot's own id, which nothing serves. A branch that
 * sleeps is not woken, and one that is awake keeps serving. A snapshot that cannot be taken is removed again; its
 * operation says why.
 */
import { type BranchSource, NoSuchMomentError, type SourceState } from '../compute/interface/driver.ts';
import { recordCatalog } from '../core/catalog.ts';
import { catalogOfCopy } from '../core/catalog-of-copy.ts';
import { type CatalogSnapshot, takeCatalogSnapshot } from '../core/catalog-snapshot.ts';
import { commandScope } from '../core/context.ts';
import { dataOf, queueSnapshotDeletion, type Snapshot } from '../core/snapshot.ts';
import { selectBranchInAnyState, updateLogicalSize } from '../db/branches.ts';
import type { ProjectRow } from '../db/projects.ts';
import { deleteSnapshotRow, selectSnapshotInAnyState, updateSnapshot } from '../db/snapshots.ts';
import { asBranchId, asSnapshotId, type BranchId } from '../lib/ids.ts';
import type { Moment } from '../lib/moments.ts';
import { readSource } from './copy-source.ts';
import {
  abandon,
  abandonIfFull,
  done,
  goto,
  type Job,
  nothingToUndo,
  type Step,
  type StepContext,
  skip,
  wait,
} from './step.ts';
import { adminSecretOf, findProject, tenantRef } from './target.ts';

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
  const seen = momentOf(context) === null ? await readSource(context, sourceBranchId) : 'asleep';
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
  const moment = momentOf(context);
  const spec = {
    ...tenantRef(project),
    branchId: dataOf(snapshot.id),
    pgVersion: project.pgVersion,
    source: sourceOf(context, project, moment),
  };
  return abandonIfLost(() =>
    abandonIfFull(async () => {
      const { receipt, source } = await context.driver.createBranch(spec);
      const { catalog, logical_size: size, read_at: readAt } = context.operation.state;
      const held = heldBy(catalog as CatalogSnapshot, source, moment);
      const takenAt = source === null || moment !== null ? String(readAt) : context.core.clock.now().toISOString();
      return done(async (tx) => {
        await updateSnapshot(tx, snapshot.id, {
          currentState: 'ready',
          receipt,
          catalog: held,
          logicalSize: source?.bytes ?? (typeof size === 'number' && moment === null ? size : null),
          lsn: moment?.kind === 'lsn' ? moment.lsn : receipt.lsn,
          // A moment that was given as a position in the log has no time on record.
          takenAt: moment?.kind === 'lsn' ? null : new Date(moment?.at ?? takenAt),
        });
      });
    }),
  );
};

function heldBy(rows: CatalogSnapshot, source: SourceState | null, moment: Moment | null): CatalogSnapshot {
  return source === null ? rows : catalogOfCopy(rows, source.catalog, moment === null ? 'head' : 'past');
}

function sourceOf(context: StepContext, project: ProjectRow, moment: Moment | null): BranchSource {
  const branchId = branchFrom(context);
  if (moment === null) return { kind: 'branch', branchId };
  return { kind: 'history', branchId, moment, adminSecret: adminSecretOf(context, project) };
}

/** The branch whose directory or history has the data; for a moment long ago it is an ancestor. */
function branchFrom({ operation }: StepContext): BranchId {
  const { from } = operation.state;
  if (typeof from !== 'string') throw new Error('BUG: the operation has no branch to copy from');
  return asBranchId(from);
}

function momentOf({ operation }: StepContext): Moment | null {
  return (operation.state.moment ?? null) as Moment | null;
}

async function abandonIfLost(step: () => ReturnType<Step>): ReturnType<Step> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof NoSuchMomentError) return abandon(error.message);
    throw error;
  }
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
