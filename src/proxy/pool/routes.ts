/** Notices that an endpoint's route was closed, so that no transaction is begun on a server that is about to stop. */
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { Pools } from './pools.ts';

export function watchRoutes(controlPlane: ControlPlane, pools: Pools, log: Logger): void {
  controlPlane.onChange?.((changed) => {
    for (const endpointId of pools.endpointIds()) {
      if (changed === null || changed === endpointId) void look(endpointId);
    }
  });

  async function look(endpointId: string): Promise<void> {
    try {
      if ((await controlPlane.findAddress(endpointId)) === null) pools.retire(endpointId);
    } catch (thrown) {
      // The server itself will say that it stops.
      log.warn({ endpointId, reason: errorText(thrown) }, 'a route could not be looked at');
    }
  }
}
