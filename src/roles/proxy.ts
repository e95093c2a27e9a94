/** The proxy role: the one database port. */
import { createHmac } from 'node:crypto';
import { startProxy } from '../proxy/listener.ts';
import { createControlPlane } from './control-plane.ts';
import type { RoleParts, RunningRole } from './parts.ts';

export async function startProxyRole({ core, log, init, certificate }: RoleParts): Promise<RunningRole> {
  const { config } = core;
  const controlPlane = await createControlPlane(core, log);
  const proxy = await startProxy({
    controlPlane,
    bind: config.bind,
    port: config.pgPort,
    tls: certificate,
    log,
    clock: core.clock,
    domain: config.domain,
    region: config.region,
    sqlSocket: init.sqlSocket,
    // From the key file, so that made-up salts survive a restart as real ones do.
    mockSecret: createHmac('sha256', init.secretKey).update('salts of roles that do not exist').digest(),
  });
  return {
    stop: async () => {
      await proxy.close();
      await controlPlane.close();
      await core.database.close();
    },
  };
}
