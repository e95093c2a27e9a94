/** For `--stop-computes`: every compute sleeps before Catnap itself stops. */

import { type Core, commandScope } from '../../core/context.ts';
import { queueSuspend } from '../../core/endpoint.ts';
import { lockEndpoint, selectActiveEndpoints } from '../../db/endpoints.ts';
import { lockProject } from '../../db/projects.ts';
import { delay } from '../../lib/clock.ts';

const deadlineMs = 60_000;

/** Returns how many still run when the time is up. */
export async function stopAllComputes(core: Core): Promise<number> {
  const giveUpAt = Date.now() + deadlineMs;
  for (;;) {
    const active = await selectActiveEndpoints(core.database.sql);
    if (active.length === 0 || Date.now() > giveUpAt) return active.length;
    for (const { projectId, id } of active.filter((endpoint) => endpoint.pendingState !== 'idle')) {
      await core.database.transaction(async (tx) => {
        const endpoint = (await lockProject(tx, projectId)) && (await lockEndpoint(tx, id));
        if (endpoint?.currentState === 'active') await queueSuspend(commandScope(core, tx), endpoint);
      });
    }
    await delay(50);
  }
}
