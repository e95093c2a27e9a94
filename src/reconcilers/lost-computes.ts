/**
 * Computes that should run and do not: their process was killed, or the machine restarted. They are started again. Some
 * drivers do that themselves, and then the server may answer at another address, to which the route is moved.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ComputeObservation } from '../compute/interface/driver.ts';
import { queueStart } from '../core/endpoint.ts';
import { computeKeys, enqueue, wakePriority } from '../core/operation.ts';
import { type EndpointRow, selectActiveEndpoints, updateEndpoint } from '../db/endpoints.ts';
import { moveRoute } from '../db/wakes.ts';
import { actIfUntouched, isSameLife } from './recheck.ts';
import { type Item, makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const lostComputes = makeReconciler('lost-computes', 1_000, async (parts) => {
  // Rows before processes: a compute that starts in between must not seem lost.
  const expected = await selectActiveEndpoints(parts.core.database.sql);
  if (expected.length === 0) return [];
  const running = new Map((await parts.driver.list()).map((compute) => [compute.endpointId, compute]));
  return expected.flatMap((endpoint): Item[] => {
    const seen = running.get(endpoint.id);
    if (seen === undefined) return [{ subject: endpoint.id, work: () => recover(parts, endpoint) }];
    return hasMoved(endpoint, seen) ? [{ subject: endpoint.id, work: () => follow(parts, endpoint, seen) }] : [];
  });
});

/** Of another generation it is the work of an operation, which records the address itself. */
function hasMoved({ address, generation }: EndpointRow, seen: ComputeObservation): boolean {
  const isComparable = seen.state === 'running' && seen.generation === generation && address !== null;
  return isComparable && seen.address !== null && !isDeepStrictEqual(seen.address, address);
}

async function follow({ core, log }: ReconcilerParts, endpoint: EndpointRow, seen: ComputeObservation): Promise<void> {
  await actIfUntouched(core, endpoint, isSameLife(endpoint), async ({ tx }) => {
    if (seen.address === null) return;
    log.warn({ endpoint: endpoint.id, from: endpoint.address, to: seen.address }, 'a compute answers elsewhere');
    await moveRoute(tx, endpoint.id, seen.address);
  });
}

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
