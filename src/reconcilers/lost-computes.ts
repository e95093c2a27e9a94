/** Computes that should run and do not: their process was killed, or the machine restarted. They are started again. */
import { queueStart } from '../core/endpoint.ts';
import { computeKeys, enqueue, wakePriority } from '../core/operation.ts';
import { type EndpointRow, selectActiveEndpoints, updateEndpoint } from '../db/endpoints.ts';
import { actIfUntouched, isSameLife } from './recheck.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const lostComputes = makeReconciler('lost-computes', 1_000, async (parts) => {
  // Rows before processes: a compute that starts in between must not seem lost.
  const expected = await selectActiveEndpoints(parts.core.database.sql);
  if (expected.length === 0) return [];
  const running = new Set((await parts.driver.list()).map((compute) => compute.endpointId));
  const lost = expected.filter(({ id }) => !running.has(id));
  return lost.map((endpoint) => ({ subject: endpoint.id, work: () => recover(parts, endpoint) }));
});

async function recover({ core, log }: ReconcilerParts, lost: EndpointRow): Promise<void> {
  await actIfUntouched(core, lost, isSameLife(lost), async (scope, endpoint) => {
    log.warn({ endpoint: lost.id }, 'a compute was lost and is started again');
    await updateEndpoint(scope.tx, lost.id, { currentState: 'idle', address: null });
    const finding = 'the server process had ended unexpectedly; it is started again';
    await enqueue(scope, 'check_availability', {
      ...computeKeys(endpoint),
      state: { finding },
      priority: wakePriority,
    });
    await queueStart(scope, endpoint, wakePriority);
  });
}
