/** The proxy role: the one database port. */
import { createHmac } from 'node:crypto';
import { startProxy } from '../proxy/listener.ts';
import { createProxyMetrics } from '../proxy/prometheus-metrics.ts';
import { createControlPlane } from './control-plane.ts';
import { openWakeConnections, type RoleParts, type RunningRole } from './parts.ts';
import { placeChannel } from './place-channel.ts';

export async function startProxyRole({ core, log, init, certificate }: RoleParts): Promise<RunningRole> {
  const { config } = core;
  const wakes = openWakeConnections(init);
  const controlPlane = await createControlPlane(core, log, wakes);
  const proxy = await startProxy({
    controlPlane,
    bind: config.bind,
    port: config.pgPort,
    portFd: init.portFd,
    tls: certificate,
    log,
    clock: core.clock,
    domain: config.domain,
    region: config.region,
    siblings: { number: init.proxyNumber, sockets: init.proxySockets },
    metrics: createProxyMetrics(init.proxyNumber),
    ...(init.proxySockets.length > 1 && { permits: placeChannel() }),
    // From the key file, so that made-up salts survive a restart as real ones do.
    mockSecret: createHmac('sha256', init.secretKey).update('salts of roles that do not exist').digest(),
  });
  return {
    stop: async () => {
      await proxy.close();
      await controlPlane.close();
      await Promise.all([core.database.close(), wakes.close()]);
    },
  };
}
