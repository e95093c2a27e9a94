/** The double with its operator: Clusters that are made in it have real servers. */
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { ComputeDriver } from '../../../src/compute/interface/driver.ts';
import { ensureBuild } from '../../../src/compute/local/host/postgres/builds.ts';
import { ensureHome } from '../../../src/machine/home.ts';
import { settingsCheckIn } from '../settings-check.ts';
import { makeTempHome } from '../temp-home.ts';
import { type OpenDouble, openDouble } from './open-double.ts';
import { OperatorDouble } from './operator.ts';
import { Volumes } from './volumes.ts';

export interface OpenOperator extends OpenDouble {
  readonly operator: OperatorDouble;
  readonly volumes: Volumes;
  /** By the Postgres that the double's servers run. */
  readonly checkSettings: ComputeDriver['checkSettings'];
}

export async function openOperator(): Promise<OpenOperator> {
  const home = await makeTempHome({ share: inject('sharedBuildsHome') });
  const layout = await ensureHome(home.config);
  const folder = join(home.path, 'double');
  await mkdir(folder);
  // Servers run under another uid, as root cannot run any.
  await chmod(folder, 0o755);
  const uid = home.config.uids?.firstTenant ?? null;
  const volumes = new Volumes(folder, (major) => ensureBuild(major, home.config, layout), uid);
  await volumes.prepare();
  const open = await openDouble();
  const operator = new OperatorDouble(open.double, volumes);
  return {
    ...open,
    operator,
    volumes,
    checkSettings: settingsCheckIn(home, layout),
    async close() {
      try {
        await operator.close();
      } finally {
        await open.close();
        await home.remove();
      }
    },
  };
}
