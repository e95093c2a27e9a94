/** Picks the parent's half of the driver from the configuration, as `open-driver.ts` picks that of a child. */
import type { Config } from '../lib/config.ts';
import type { Logger } from '../lib/log.ts';
import type { DriverHost } from './interface/driver-host.ts';
import { LocalDriverHost } from './local/host/driver-host.ts';
import type { Layout } from './local/host/home/layout.ts';

export function openDriverHost(config: Config, layout: Layout, log: Logger): DriverHost {
  switch (config.driver) {
    case 'local':
      return new LocalDriverHost(config, layout, log);
    case 'kubernetes':
      throw new Error('the Kubernetes driver is not built yet');
  }
}
