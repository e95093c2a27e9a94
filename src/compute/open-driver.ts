/**
 * Picks the driver of a child process from the configuration. Another driver is a folder beside `local/`, a line here,
 * and one in `open-driver-host.ts`, its half in the parent: two files, so that no child loads what only root can do.
 */
import type { Config } from '../lib/config.ts';
import type { ComputeDriver, DriverAdvice } from './interface/driver.ts';
import type { DriverChannel } from './interface/driver-host.ts';
import { remoteHost } from './local/channel/remote.ts';
import { LocalDriver } from './local/driver/local-driver.ts';

/** `channel` leads to the parent, which answers it through `DriverHost`. */
export async function openDriver(
  { kubernetes }: Pick<Config, 'kubernetes'>,
  channel: DriverChannel,
): Promise<ComputeDriver> {
  const host = remoteHost(channel);
  if (kubernetes === undefined) return new LocalDriver(host);
  const { openKubernetesDriver } = await import('./kubernetes/open-driver.ts');
  return openKubernetesDriver(kubernetes, host.checkSettings);
}

/** For a process that touches no compute: on Kubernetes it needs no credentials. */
export async function openAdvice(
  { kubernetes }: Pick<Config, 'kubernetes'>,
  channel: DriverChannel,
): Promise<DriverAdvice> {
  const host = remoteHost(channel);
  if (kubernetes === undefined) return new LocalDriver(host);
  const { adviceOn } = await import('./kubernetes/driver/advice.ts');
  return adviceOn(kubernetes.images, host.checkSettings);
}
