/** Records the sizes of branches: servers that are awake are asked, those that sleep keep their last size. */
import { computeRef } from '../core/endpoint.ts';
import { updateLogicalSize } from '../db/branches.ts';
import { type ActiveCompute, selectActiveComputes } from '../db/endpoints.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const branchSizes = makeReconciler('branch-sizes', 15_000, async (parts) => {
  const active = await selectActiveComputes(parts.core.database.sql);
  // A replica has what its primary has, only later.
  const primaries = active.filter(({ type, pendingState }) => type === 'read_write' && pendingState === null);
  return primaries.map((primary) => ({ subject: primary.id, work: () => measure(parts, primary) }));
});

async function measure({ core, driver }: ReconcilerParts, primary: ActiveCompute): Promise<void> {
  const bytes = await driver.observeSize(computeRef(primary));
  if (bytes !== null) await updateLogicalSize(core.database.sql, primary.branchId, bytes);
}
