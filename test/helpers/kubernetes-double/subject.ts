/** The Kubernetes driver over the double, whose servers are real: what the contract suite asks of every driver. */
import type { DriverSubject } from '../../../src/compute/contract/bench.ts';
import { KubernetesDriver } from '../../../src/compute/kubernetes/driver/kubernetes-driver.ts';
import { servedBy } from '../../../src/compute/kubernetes/driver/serving.ts';
import type { Platform } from '../../../src/compute/kubernetes/manifests/cluster.ts';
import { projectLabel } from '../../../src/compute/kubernetes/manifests/labels.ts';
import type { Cluster } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { newProjectId } from '../../../src/lib/ids.ts';
import { queryAsTenant } from '../query-as-tenant.ts';
import { claimOf } from './cluster-status.ts';
import { type OpenOperator, openOperator } from './open-operator.ts';

export interface DoubleSubject extends DriverSubject {
  readonly open: OpenOperator;
  readonly platform: Platform;
  readonly query: NonNullable<DriverSubject['query']>;
}

const kinds = ['clusters', 'pods', 'services', 'persistentvolumeclaims', 'volumesnapshots', 'secrets'];

export async function makeDoubleSubject(pgVersion: number): Promise<DoubleSubject> {
  const open = await openOperator();
  const { double, volumes, operator, checkSettings } = open;
  const platform: Platform = {
    namespace: double.namespace,
    images: { [pgVersion]: `registry.test/postgresql:${pgVersion}.6` },
    storageClass: null,
    snapshotClass: null,
    volumeSize: '1Gi',
  };
  const openDriver = () => new KubernetesDriver({ client: open.client(), platform, checkSettings });
  return {
    open,
    platform,
    driver: openDriver(),
    pgVersion,
    // As a pod's manager does.
    revives: true,
    reopen: openDriver,
    newTenant: () => ({ projectId: newProjectId(), tenantUid: null }),
    kill: async ({ endpointId }) => {
      const clusters = double.store.list('clusters') as unknown as readonly Cluster[];
      const served = clusters.find((cluster) => servedBy(cluster)?.endpointId === endpointId);
      const pid = served && (await volumes.find(claimOf(served.metadata.name)));
      if (pid) process.kill(pid, 'SIGKILL');
    },
    leftovers: async () => {
      await operator.settled();
      const left = kinds.flatMap((kind) =>
        double.store
          .list(kind)
          .map(({ metadata }) => `${metadata.labels?.[projectLabel] ?? 'nobody'}/${kind}/${metadata.name}`),
      );
      return [...left, ...(await volumes.list()).map((name) => `volume ${name}`)];
    },
    query: queryAsTenant,
    close: () => open.close(),
  };
}
