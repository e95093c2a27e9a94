/** Suspends every compute, for `--stop-computes`: they sleep before Catnap itself stops. */
import { lockEndpoint, selectActiveEndpoints } from '../db/endpoints.ts';
import { lockProject } from '../db/projects.ts';
import { delay } from '../lib/clock.ts';
import { type Core, commandScope } from './context.ts';
import { queueSuspend } from './endpoint.ts';

const limitMsMax = 60_000;
const checkEveryMs = 50;

/** Returns how many still run when the time is up. The worker must be running. */
export async function suspendAllComputes(core: Core, limitMs = limitMsMax): Promise<number> {
  const begunAt = performance.now();
  for (;;) {
    const active = await selectActiveEndpoints(core.database.sql);
    if (active.length === 0 || performance.now() - begunAt > limitMs) return active.length;
    for (const { projectId, id } of active.filter((endpoint) => endpoint.pendingState !== 'idle')) {
      await core.database.transaction(async (tx) => {
        const endpoint = (await lockProject(tx, projectId)) && (await lockEndpoint(tx, id));
        if (endpoint?.currentState === 'active') await queueSuspend(commandScope(core, tx), endpoint);
      });
    }
    await delay(checkEveryMs);
  }
}
