/**
 * What a deletion does to the rows and processes of a branch or a project. Deleted things are hidden at once and their
 * computes sleep; they keep everything else until they are recovered (`recovery.ts`) or removed for good.
 */

import { notifyKeysChanged } from '../db/api-keys.ts';
import { detachAuthIntegrations, insertLeftovers } from '../db/auth-integrations.ts';
import { type BranchRow, updateBranch } from '../db/branches.ts';
import { selectEndpointsToRemove } from '../db/deleted.ts';
import { type EndpointRow, updateEndpoint } from '../db/endpoints.ts';
import { markProject, type ProjectRow } from '../db/projects.ts';
import { endStorage } from '../db/storage.ts';
import { dayMs } from '../lib/clock.ts';
import type { ProjectId } from '../lib/ids.ts';
import type { CommandScope, Scope } from './context.ts';
import {
  branchKey,
  cancelAhead,
  computeKeys,
  endpointKey,
  enqueue,
  historyKey,
  type Operation,
  projectKey,
} from './operation.ts';

/** For a deletion now; null when this installation keeps nothing that was deleted. */
export function deletionTimes({ clock, config }: Scope): { deletingAt: Date; recoverableUntil: Date } | null {
  if (config.recoveryDays === 0) return null;
  const deletingAt = clock.now();
  return { deletingAt, recoverableUntil: new Date(deletingAt.getTime() + config.recoveryDays * dayMs) };
}

/**
 * Puts the computes of something deleted to sleep, however long that takes. Their routes are closed at once. Those that
 * sleep already are stopped too: a start that was cancelled may have left a server. Returns what is listed in public.
 * The caller holds the project.
 */
export async function queueStops(scope: CommandScope, endpoints: readonly EndpointRow[]): Promise<Operation[]> {
  const operations: Operation[] = [];
  for (const endpoint of endpoints) {
    await updateEndpoint(scope.tx, endpoint.id, { pendingState: 'idle', address: null });
    const job = endpoint.currentState === 'active' ? 'suspend_compute' : 'ensure_asleep';
    const operation = await enqueue(scope, job, { ...computeKeys(endpoint), deadlineMs: dayMs });
    if (operation.action !== null) operations.push(operation);
  }
  return operations;
}

export interface BranchDeletion {
  readonly branch: BranchRow;
  readonly operations: readonly Operation[];
}

/** Queues the removal of a branch with its computes and data, deleted before or not. The caller holds the project. */
export async function removeBranchForGood(scope: CommandScope, branch: BranchRow): Promise<BranchDeletion> {
  const { id, projectId } = branch;
  const endpoints = await selectEndpointsToRemove(scope.tx, id);
  await cancelAhead(scope.tx, projectId, { branchId: id });
  const deletingAt = branch.deletingAt ?? scope.clock.now();
  const operations: Operation[] = [];
  for (const endpoint of endpoints) {
    await updateEndpoint(scope.tx, endpoint.id, { deletingAt, recoverableUntil: null, address: null });
    const job = endpoint.currentState === 'active' ? 'suspend_and_remove_compute' : 'remove_compute';
    const operation = await enqueue(scope, job, {
      projectId,
      branchId: id,
      endpointId: endpoint.id,
      exclusive: [endpointKey(endpoint.id), branchKey(id)],
    });
    if (operation.action !== null) operations.push(operation);
  }
  const exclusive = [branchKey(id), historyKey(id)];
  operations.push(await enqueue(scope, 'delete_timeline', { projectId, branchId: id, exclusive }));
  await detachAuthIntegrations(scope.tx, id);
  await endStorage(scope.tx, { projectId, branchId: id }, deletingAt);
  const pendingState = 'storage_deleted';
  const removed = await updateBranch(scope.tx, id, { deletingAt, recoverableUntil: null, pendingState });
  return { branch: removed, operations };
}

/** Queues the last operation of a project, which removes processes, directories and rows. The caller holds it. */
export async function removeProjectForGood(
  scope: CommandScope,
  { id, deletingAt }: { readonly id: ProjectId; readonly deletingAt: Date | null },
): Promise<ProjectRow> {
  await cancelAhead(scope.tx, id, {});
  await insertLeftovers(scope.tx, { projectId: id });
  await enqueue(scope, 'delete_project', { projectId: id, exclusive: [projectKey(id)] });
  await notifyKeysChanged(scope.tx, id);
  return markProject(scope.tx, id, { deletingAt: deletingAt ?? scope.clock.now(), recoverableUntil: null });
}
