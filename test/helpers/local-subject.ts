/** The local driver over a temporary home: what its tests, and others that want real servers, begin with. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { DriverSubject } from '../../src/compute/contract/bench.ts';
import { LocalDriver } from '../../src/compute/local/driver/local-driver.ts';
import type { BaseCopies } from '../../src/compute/local/host/history/bases.ts';
import type { Layout } from '../../src/compute/local/host/home/layout.ts';
import { PrivilegedHost } from '../../src/compute/local/host/privileged-host.ts';
import type { Config } from '../../src/lib/config.ts';
import { newProjectId } from '../../src/lib/ids.ts';
import { ensureHome } from '../../src/machine/home.ts';
import { queryAsTenant } from './query-as-tenant.ts';
import { makeTempHome } from './temp-home.ts';

export interface LocalSubject extends DriverSubject {
  readonly config: Config;
  readonly layout: Layout;
  /** The privileged half, as a new start of Catnap would make it. */
  openHost(copies?: BaseCopies): PrivilegedHost;
  readonly query: NonNullable<DriverSubject['query']>;
}

/** With extensions there are builds of its own, which other tests would take for old ones. */
export async function makeLocalSubject(
  pgVersion: number,
  under?: string,
  extensions?: Config['extensions'],
): Promise<LocalSubject> {
  const ownBuilds = extensions !== undefined;
  const home = await makeTempHome({ share: inject('sharedBuildsHome'), under, ownBuilds });
  const config = ownBuilds ? { ...home.config, extensions } : home.config;
  const layout = await ensureHome(config);
  const openHost = (copies?: BaseCopies) => new PrivilegedHost(config, layout, undefined, undefined, copies);
  const host = openHost();
  await host.prepare(pgVersion, () => undefined);
  let lastUid = config.uids?.firstTenant ?? null;
  return {
    driver: new LocalDriver(host),
    pgVersion,
    config,
    layout,
    openHost,
    reopen: () => new LocalDriver(openHost()),
    newTenant: () => {
      if (lastUid !== null) lastUid++;
      return { projectId: newProjectId(), tenantUid: lastUid };
    },
    kill: ({ pid }) => {
      if (pid !== null) process.kill(pid, 'SIGKILL');
    },
    leftovers: () => leftovers(layout),
    query: queryAsTenant,
    close: () => home.remove(),
  };
}

async function leftovers(layout: Layout): Promise<string[]> {
  const found: string[] = [];
  for (const folder of [layout.projects, layout.histories, layout.sockets, layout.trash, layout.work]) {
    for (const name of await readdir(folder)) found.push(join(folder, name));
  }
  // That of Catnap's own processes, which is there from the first start on.
  return found.filter((path) => path !== layout.proxySocketDirectory);
}
