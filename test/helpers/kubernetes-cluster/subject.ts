/** The Kubernetes driver on a real cluster, for the contract suite. */
import { inject } from 'vitest';
import type { DriverSubject } from '../../../src/compute/contract/bench.ts';
import type { ComputeObservation } from '../../../src/compute/interface/driver.ts';
import type { KubernetesClient } from '../../../src/compute/kubernetes/client/client.ts';
import { KubernetesDriver } from '../../../src/compute/kubernetes/driver/kubernetes-driver.ts';
import { servedBy } from '../../../src/compute/kubernetes/driver/serving.ts';
import { StalledServers } from '../../../src/compute/kubernetes/driver/stalled-servers.ts';
import { adminSecretName, labelsOfEverything } from '../../../src/compute/kubernetes/manifests/labels.ts';
import { clusters, secrets } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { adminLogin, isNotReady, withSession } from '../../../src/compute/server/admin-session.ts';
import { newProjectId } from '../../../src/lib/ids.ts';
import { ensureHome } from '../../../src/machine/home.ts';
import { queryAsTenant } from '../query-as-tenant.ts';
import { settingsCheckIn } from '../settings-check.ts';
import { makeTempHome } from '../temp-home.ts';
import { openChosenCluster } from './chosen-cluster.ts';

export async function makeClusterSubject(): Promise<DriverSubject> {
  const { client, platform, pgVersion, newcomers, close } = await openChosenCluster();
  const home = await makeTempHome({ share: inject('sharedBuildsHome') });
  const checkSettings = settingsCheckIn(home, await ensureHome(home.config));
  // As the parent of a Catnap does, which the driver alone does not have.
  const stalled = new StalledServers(client);
  const looking = setInterval(() => void stalled.look().catch(() => undefined), 2_000);
  const openDriver = () => new KubernetesDriver({ client, platform, checkSettings });
  return {
    driver: openDriver(),
    pgVersion,
    // The kubelet starts the container again, or the operator a new pod.
    revives: true,
    reopen: openDriver,
    newTenant: () => ({ projectId: newProjectId(), tenantUid: null }),
    kill: (observation) => killServer(client, observation),
    leftovers: newcomers,
    query: queryAsTenant,
    async close() {
      clearInterval(looking);
      close();
      await home.remove();
    },
  };
}

/** From inside, as nothing else reaches the process on any cluster. Backends have the data directory as their own. */
async function killServer(client: KubernetesClient, { endpointId, address }: ComputeObservation): Promise<void> {
  const { items } = await client.list(clusters, labelsOfEverything);
  const served = items.find((cluster) => servedBy(cluster)?.endpointId === endpointId);
  const secret = served && (await client.find(secrets, adminSecretName(served.metadata.name)));
  const password = secret?.data?.password;
  if (password === undefined || address === null) throw new Error(`nothing serves ${endpointId}`);
  const kill = `COPY (SELECT 1) TO PROGRAM 'read pid < postmaster.pid; kill -9 $pid'`;
  const login = adminLogin(Buffer.from(password, 'base64').toString('utf8'));
  await withSession(address, login, (sql) => sql.unsafe(kill)).catch((error: unknown) => {
    // The session ends with the server, before or after the statement is answered.
    if (!isNotReady(error)) throw error;
  });
}
