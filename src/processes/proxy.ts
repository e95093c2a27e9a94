/** The proxy process: the one database port. */
import { createHmac } from 'node:crypto';
import { startProxy } from '../proxy/listener.ts';
import { isPermitAnswer, type PermitChannel } from '../proxy/permits/messages.ts';
import { createProxyMetrics } from '../proxy/prometheus-metrics.ts';
import type { ChildEnd } from './channel/messages.ts';
import { createControlPlane } from './control-plane.ts';
import { openWakeConnections, type ProcessParts, type RunningProcess } from './parts.ts';

export async function startProxyProcess(parts: ProcessParts): Promise<RunningProcess> {
  const { core, log, init, channel, certificate } = parts;
  const { config } = core;
  const wakes = openWakeConnections(init);
  const controlPlane = await createControlPlane(core, log, wakes, (listener) => channel.on('server', listener));
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
    replicas: config.replicas,
    limits: { drainMs: config.drainSeconds * 1_000 },
    siblings: { number: init.number, sockets: init.proxySockets },
    metrics: createProxyMetrics(init.number),
    ...(init.proxySockets.length > 1 && { permits: permitChannel(channel) }),
    // Derived from the key file, so that made-up salts survive a restart as real ones do.
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

/** The channel to the permit broker in the parent. */
function permitChannel(channel: ChildEnd): PermitChannel {
  return {
    send: (request) => channel.send('permits', request),
    onAnswer: (listener) => {
      channel.on('permits', (message) => {
        if (isPermitAnswer(message)) listener(message);
      });
    },
  };
}
