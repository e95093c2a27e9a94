/** How large branches are: asked of the servers that are awake, remembered for those that sleep. */
import { updateLogicalSize } from '../db/branches.ts';
import { type EndpointRow, selectActiveEndpoints } from '../db/endpoints.ts';
import { selectProject } from '../db/projects.ts';
import { onItsOwn, type Reconciler, type ReconcilerParts } from './reconciler.ts';

export const branchSizes: Reconciler = {
  name: 'branch-sizes',
  everyMs: 15_000,
  turn: async (parts) => {
    const active = await selectActiveEndpoints(parts.core.database.sql);
    // A replica has what its primary has, only later.
    const primaries = active.filter(({ type, pendingState }) => type === 'read_write' && pendingState === null);
    for (const primary of primaries) await onItsOwn(parts, primary.id, () => measure(parts, primary));
  },
};

async function measure({ core, driver }: ReconcilerParts, primary: EndpointRow): Promise<void> {
  const project = await selectProject(core.database.sql, primary.projectId);
  if (project === undefined) return;
  const { branchId, id: endpointId } = primary;
  const bytes = await driver.observeSize({ projectId: project.id, tenantUid: project.tenantUid, branchId, endpointId });
  if (bytes !== null) await updateLogicalSize(core.database.sql, branchId, bytes);
}
