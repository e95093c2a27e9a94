/**
 * Copies a branch's data for a new one: the head of its parent, or a moment of the past. A parent branch that is awake
 * keeps serving; keys shared with its other copies keep it from starting, stopping and being deleted meanwhile. Should
 * its server die, the copy fails and is tried again. A schema-only branch is emptied before it is visible to anyone.
 */
import type { BranchReceipt, SourceState } from '../compute/interface/driver.ts';
import { recordCatalog } from '../core/catalog.ts';
import { projectKey } from '../core/operation.ts';
import {
  copyLogicalSize,
  selectBranchInAnyState,
  updateBranch,
  updateCatalogKept,
  updateLogicalSize,
} from '../db/branches.ts';
import type { Tx } from '../db/client.ts';
import { confirmCopiedDatabases } from '../db/databases.ts';
import { updateHistory } from '../db/histories.ts';
import { releaseShared } from '../db/operations.ts';
import { confirmCopiedRoles, recallPasswords } from '../db/roles.ts';
import type { BranchId } from '../lib/ids.ts';
import { copyPast, pastOf, readSource } from './copy-source.ts';
import { abandon, abandonIfHopeless, done, goto, type Job, type Step, type StepContext, skip } from './step.ts';
import { adminSecretOf, type BranchTarget, findBranch } from './target.ts';

const copy: Step = async (context) => {
  const target = await findBranch(context);
  const parentId = target?.branch.parentId ?? null;
  if (target === undefined || parentId === null) return skip('the branch is gone');
  const past = pastOf(context);
  if (past === null && (await isEmpty(context, parentId))) return abandon('the parent has no data to copy');
  return abandonIfHopeless(async () => {
    const made =
      past === null
        ? await copyHead(context, target, parentId)
        : await copyPast(context, target, target.branch.id, past);
    const isLogical = target.project.settings.enable_logical_replication;
    // A schema-only branch is detached when it is emptied.
    if (isLogical && target.branch.initSource !== 'schema-only') {
      const adminSecret = adminSecretOf(context, target.project);
      await context.driver.detachBranch({ ...target.ref, pgVersion: target.project.pgVersion, adminSecret });
    }
    const copied = { target, source: withGrants(made.source, isLogical), receipt: made.receipt };
    const record = (tx: Tx) => (past === null ? recordCopy(tx, parentId, copied) : recordPast(tx, copied));
    if (target.branch.initSource === 'schema-only') {
      return goto('empty', async (tx) => {
        await record(tx);
        // From here on the copy is on its own: its parent is free, however long emptying takes or fails.
        await releaseShared(tx, context.operation.id, [projectKey(target.project.id)]);
      });
    }
    return done(async (tx) => {
      await record(tx);
      await Promise.all([
        updateBranch(tx, target.branch.id, { currentState: 'ready', pendingState: null }),
        past === null ? copyLogicalSize(tx, parentId, target.branch.id) : undefined,
      ]);
    });
  });
};

/** Whatever was to give it data is over by now: that holds the branch. */
async function isEmpty({ core }: StepContext, id: BranchId): Promise<boolean> {
  const branch = await selectBranchInAnyState(core.database.sql, id);
  return branch === undefined || branch.currentState === 'init';
}

async function copyHead(context: StepContext, { project, ref }: BranchTarget, parentId: BranchId) {
  const source = { kind: 'branch', branchId: parentId } as const;
  const made = await context.driver.createBranch({ ...ref, pgVersion: project.pgVersion, source });
  return { receipt: made.receipt, source: made.source ?? (await readParent(context, parentId)) };
}

/** For a copy whose worker died before it reported: what the parent holds now may not be in that copy. */
async function readParent(context: StepContext, parentId: BranchId): Promise<SourceState | null> {
  const seen = await readSource(context, parentId);
  return seen === 'asleep' || seen === 'starting' ? null : seen;
}

/** Roles of a parent that was copied while it waited for its rights to replicate get theirs at the first start. */
function withGrants(source: SourceState | null, isLogical: boolean): SourceState | null {
  return source !== null && isLogical ? { ...source, isExact: false } : source;
}

interface Copied {
  readonly target: BranchTarget;
  readonly source: SourceState | null;
  readonly receipt: BranchReceipt;
}

const nothing = { roles: [], databases: [] };

/** If the copy holds exactly what was read, its first start does not read it again. */
async function recordCopy(tx: Tx, parentId: BranchId, { target, source, receipt }: Copied): Promise<void> {
  const { id } = target.branch;
  await Promise.all([
    updateBranch(tx, id, { receipt, parentLsn: receipt.lsn }),
    ...(source === null
      ? []
      : [
          recordCatalog(tx, parentId, nothing, source.catalog),
          recordCatalog(tx, id, nothing, source.catalog),
          updateCatalogKept(tx, id, source.isExact),
          source.bytes === null ? undefined : updateLogicalSize(tx, parentId, source.bytes),
        ]),
  ]);
  // No change has been carried out on the parent since it was copied: every operation that could waits for this one.
  await Promise.all([confirmCopiedRoles(tx, parentId, id), confirmCopiedDatabases(tx, parentId, id)]);
}

/** Nothing of it concerns the parent, which has gone on since. */
async function recordPast(tx: Tx, { target, source, receipt }: Copied): Promise<void> {
  const { id, projectId, parentLsn } = target.branch;
  await updateBranch(tx, id, { receipt, parentLsn: receipt.lsn ?? parentLsn });
  if (source === null) return;
  await recordCatalog(tx, id, nothing, source.catalog);
  await recallPasswords(tx, projectId, id);
  await updateCatalogKept(tx, id, source.isExact);
  if (source.bytes !== null) await updateLogicalSize(tx, id, source.bytes);
}

/** Until this is over the branch is not ready, and nothing can be started on it. */
const empty: Step = async (context) => {
  const target = await findBranch(context);
  if (target === undefined || target.branch.deletingAt !== null) return skip('the branch is gone');
  const { pgVersion } = target.project;
  await context.driver.emptyBranch({ ...target.ref, pgVersion, adminSecret: adminSecretOf(context, target.project) });
  // It has no past to continue, so its own begins before its first start.
  const { historyRetentionSeconds: retentionSeconds } = target.project;
  const history = await context.driver.keepHistory(target.ref, { retentionSeconds });
  return done(async (tx) => {
    await updateHistory(tx, target.branch.id, history);
    await updateBranch(tx, target.branch.id, { currentState: 'ready', pendingState: null });
  });
};

export const createBranch: Job = {
  steps: { copy, empty },
  giveUp: async (tx, { operation }) => {
    if (operation.branchId !== null) await updateBranch(tx, operation.branchId, { pendingState: null });
  },
};
