/** Suspends every compute, for `--stop-computes`: they sleep before Catnap itself stops. */
import type { Tx } from '../db/client.ts';
import { lockEndpoint } from '../db/endpoints.ts';
import { selectRestlessEndpoints } from '../db/going-on.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { lockProject } from '../db/projects.ts';
import { delay } from '../lib/clock.ts';
import type { EndpointId, ProjectId } from '../lib/ids.ts';
import { type Core, commandScope } from './context.ts';
import { queueSuspend } from './endpoint.ts';

const limitMsMax = 60_000;
const checkEveryMs = 50;

/** Returns how many are still awake or busy when the time is up. The worker must be running. */
export async function suspendAllComputes(core: Core, limitMs = limitMsMax): Promise<number> {
  const begunAt = performance.now();
  for (;;) {
    const restless = await selectRestlessEndpoints(core.database.sql);
    if (restless.length === 0 || performance.now() - begunAt > limitMs) return restless.length;
    for (const { projectId, id } of restless) {
      await core.database.transaction((tx) => suspendInTheEnd(core, tx, projectId, id));
    }
    await delay(checkEveryMs);
  }
}

/** A start that is queued or under way would leave a server behind, so the suspend is queued after it. */
async function suspendInTheEnd(core: Core, tx: Tx, projectId: ProjectId, id: EndpointId): Promise<void> {
  const endpoint = (await lockProject(tx, projectId)) && (await lockEndpoint(tx, id));
  if (endpoint === undefined) return;
  const last = await selectUnfinishedForEndpoint(tx, id);
  const isRestless = endpoint.currentState === 'active' || last !== undefined;
  if (isRestless && last?.job !== 'suspend_compute') await queueSuspend(commandScope(core, tx), endpoint);
}
