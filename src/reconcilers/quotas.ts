/**
 * Suspends the computes of projects that have used up a quota of the month. Projects with a quota are metered more
 * often than others, so that it is exceeded by seconds and not by minutes. Nothing is started again when the month ends
 * or the quota is raised: the next client does that.
 */
import { commandScope } from '../core/context.ts';
import { computeRef, queueSuspend } from '../core/endpoint.ts';
import { spentQuota } from '../core/quota.ts';
import { addConsumption, meterTime, meterWritten, type Written } from '../db/consumption.ts';
import { type ActiveCompute, selectActiveComputes, selectEndpoints } from '../db/endpoints.ts';
import { lockProject, selectProject, selectProjectIdsWithQuota } from '../db/projects.ts';
import { meterTransfers } from '../db/transfers.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const quotas = makeReconciler('quotas', 5_000, async (parts) => {
  const { sql } = parts.core.database;
  const active = await selectActiveComputes(sql);
  const limited = (await selectProjectIdsWithQuota(sql)).flatMap((projectId) => {
    const computes = active.filter((compute) => compute.projectId === projectId);
    return computes.length === 0 ? [] : [{ projectId, computes }];
  });
  return limited.map(({ projectId, computes }) => ({
    subject: projectId,
    work: () => enforce(parts, projectId, computes),
  }));
});

async function enforce(
  parts: ReconcilerParts,
  projectId: ProjectId,
  computes: readonly ActiveCompute[],
): Promise<void> {
  const { core, log } = parts;
  const written = await readWritten(parts, computes);
  await core.database.transaction(async (tx) => {
    if ((await lockProject(tx, projectId)) === undefined) return;
    const now = core.clock.now();
    const time = await meterTime(tx, now, [projectId]);
    const wal = await meterWritten(tx, written);
    await addConsumption(tx, [...time, ...wal, ...(await meterTransfers(tx, [projectId]))], now);
    const project = await selectProject(tx, projectId);
    const spent = project === undefined ? null : spentQuota(project, now);
    if (spent === null) return;
    const running = (await selectEndpoints(tx, projectId)).filter(
      ({ currentState, pendingState }) => currentState === 'active' && pendingState !== 'idle',
    );
    if (running.length === 0) return;
    const { name, limit, used } = spent;
    log.warn({ project: projectId, quota: name, limit, used }, 'a quota is used up: the computes are suspended');
    for (const endpoint of running) await queueSuspend(commandScope(core, tx), endpoint);
  });
}

/** A server that is busy, or just stopping, is asked again in the next turn. */
async function readWritten(
  { driver }: ReconcilerParts,
  computes: readonly ActiveCompute[],
): Promise<ReadonlyMap<BranchId, Written>> {
  const written = new Map<BranchId, Written>();
  for (const compute of computes) {
    if (compute.type === 'read_only') continue;
    const measures = await driver.measure(computeRef(compute)).catch(() => null);
    if (measures?.wal != null) written.set(compute.branchId, measures.wal);
  }
  return written;
}
