/** Computes that should run and do not: their process was killed, or the machine restarted. They are started again. */
import { commandScope } from '../core/context.ts';
import { queueStart } from '../core/endpoint.ts';
import { computeKeys, enqueue, wakePriority } from '../core/operation.ts';
import { type EndpointRow, lockEndpoint, selectActiveEndpoints, updateEndpoint } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { lockProject } from '../db/projects.ts';
import { onItsOwn, type Reconciler, type ReconcilerParts } from './reconciler.ts';

export const lostComputes: Reconciler = {
  name: 'lost-computes',
  everyMs: 1_000,
  turn: async (parts) => {
    // Rows before processes: a compute that starts in between must not look lost.
    const expected = await selectActiveEndpoints(parts.core.database.sql);
    if (expected.length === 0) return;
    const running = new Set((await parts.driver.list()).map((compute) => compute.endpointId));
    for (const endpoint of expected) {
      if (!running.has(endpoint.id)) await onItsOwn(parts, endpoint.id, () => recover(parts, endpoint));
    }
  },
};

async function recover({ core, log }: ReconcilerParts, lost: EndpointRow): Promise<void> {
  await core.database.transaction(async (tx) => {
    const scope = commandScope(core, tx);
    const endpoint = (await lockProject(tx, lost.projectId)) && (await lockEndpoint(tx, lost.id));
    const isStill = endpoint?.currentState === 'active' && endpoint.generation === lost.generation;
    // An operation that is under way knows better than a look from outside.
    if (!isStill || (await selectUnfinishedForEndpoint(tx, lost.id)) !== undefined) return;
    log.warn({ endpoint: lost.id }, 'a compute was lost and is started again');
    await updateEndpoint(tx, lost.id, { currentState: 'idle', address: null });
    const finding = 'the server process had ended unexpectedly; it is started again';
    await enqueue(scope, 'check_availability', {
      ...computeKeys(endpoint),
      state: { finding },
      priority: wakePriority,
    });
    await queueStart(scope, endpoint, wakePriority);
  });
}
