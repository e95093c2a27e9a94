/** Picks the parent's half of the driver from the configuration, as `open-driver.ts` picks that of a child. */
import type { Config } from '../lib/config.ts';
import type { Logger } from '../lib/log.ts';
import type { DriverHost } from './interface/driver-host.ts';
import { LocalDriverHost } from './local/host/driver-host.ts';
import type { Layout } from './local/host/home/layout.ts';

export async function openDriverHost(config: Config, layout: Layout, log: Logger): Promise<DriverHost> {
  const { kubernetes } = config;
  if (kubernetes === undefined) return new LocalDriverHost(config, layout, log);
  const { KubernetesDriverHost } = await import('./kubernetes/host/driver-host.ts');
  return new KubernetesDriverHost(kubernetes, config, layout, log);
}
