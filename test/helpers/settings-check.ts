/** Asks the Postgres of the run itself whether settings are good, as the host of the Kubernetes driver does. */
import { join } from 'node:path';
import type { ComputeDriver } from '../../src/compute/interface/driver.ts';
import type { Layout } from '../../src/compute/local/host/home/layout.ts';
import { Majors } from '../../src/compute/local/host/postgres/majors.ts';
import { checkSettings } from '../../src/compute/local/host/postgres/settings-check.ts';
import type { TempHome } from './temp-home.ts';

export function settingsCheckIn({ config }: TempHome, layout: Layout): ComputeDriver['checkSettings'] {
  const majors = new Majors(config, layout);
  return async (major, settings) => {
    const { build, template } = await majors.ready(major);
    return checkSettings(join(build.bin, 'postgres'), template.dataDirectory, settings);
  };
}
