/** Removes deleted projects and branches for good when their time is up, and sees to it that their computes sleep. */
import { commandScope } from '../core/context.ts';
import { queueStops, removeBranchForGood, removeProjectForGood } from '../core/deletion.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import type { Tx } from '../db/client.ts';
import {
  lockAnyProject,
  selectAwakeThoughDeleted,
  selectBranchesToPurge,
  selectProjectsToPurge,
} from '../db/deleted.ts';
import { selectEndpointInAnyState } from '../db/endpoints.ts';
import type { ProjectRow } from '../db/projects.ts';
import type { EndpointId, ProjectId } from '../lib/ids.ts';
import { type Item, makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const deletedThings = makeReconciler('deleted-things', 5_000, async (parts) => {
  const { sql } = parts.core.database;
  const now = parts.core.clock.now();
  const isDue = (row: { readonly recoverableUntil: Date | null }) =>
    row.recoverableUntil !== null && row.recoverableUntil <= now;
  const projects = (await selectProjectsToPurge(sql, now)).map((id): Item => {
    const work = holding(parts, id, async (tx, project) => {
      if (!isDue(project)) return;
      parts.log.info({ project: id }, 'the time to recover a project is over and it is removed');
      await removeProjectForGood(commandScope(parts.core, tx), project);
    });
    return { subject: id, work };
  });
  const branches = (await selectBranchesToPurge(sql, now)).map(({ id, projectId }): Item => {
    const work = holding(parts, projectId, async (tx, project) => {
      const branch = await selectBranchInAnyState(tx, id);
      // A project on its way out takes its branches along.
      const isGoing = project.deletingAt !== null && project.recoverableUntil === null;
      if (isGoing || branch === undefined || !isDue(branch)) return;
      parts.log.info({ branch: id }, 'the time to recover a branch is over and it is removed');
      await removeBranchForGood(commandScope(parts.core, tx), branch);
    });
    return { subject: id, work };
  });
  const awake = (await selectAwakeThoughDeleted(sql)).map(({ id, projectId }): Item => {
    return { subject: id, work: holding(parts, projectId, (tx, project) => stopAgain(parts, tx, project, id)) };
  });
  return [...projects, ...branches, ...awake];
});

/** What was seen without a lock may have changed: the work looks again. */
function holding({ core }: ReconcilerParts, id: ProjectId, work: (tx: Tx, project: ProjectRow) => Promise<void>) {
  return () =>
    core.database.transaction(async (tx) => {
      const project = await lockAnyProject(tx, id);
      if (project !== undefined) await work(tx, project);
    });
}

async function stopAgain({ core, log }: ReconcilerParts, tx: Tx, project: ProjectRow, id: EndpointId): Promise<void> {
  const endpoint = await selectEndpointInAnyState(tx, id);
  const waits = project.recoverableUntil !== null || endpoint?.recoverableUntil != null;
  if (endpoint === undefined || !waits || endpoint.currentState !== 'active') return;
  log.warn({ endpoint: id }, 'a compute of something deleted is awake; it is suspended');
  await queueStops(commandScope(core, tx), [endpoint]);
}
