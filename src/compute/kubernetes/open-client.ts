/** The way into the cluster that is configured, and what its administrator chose for all computes. */
import type { KubernetesSettings } from '../../lib/kubernetes-settings.ts';
import { type ClusterAccess, readKubeconfig, readPodAccess } from './client/access.ts';
import { KubernetesClient } from './client/client.ts';
import type { Platform } from './manifests/cluster.ts';

export interface OpenedCluster {
  readonly client: KubernetesClient;
  readonly platform: Platform;
}

export async function openCluster(settings: KubernetesSettings): Promise<OpenedCluster> {
  const access = await readAccess(settings.access);
  const namespace = settings.namespace ?? access.namespace;
  const client = new KubernetesClient({ ...access, namespace });
  const { images, volumeSize, storageClass = null, snapshotClass = null } = settings;
  return { client, platform: { namespace, images, storageClass, snapshotClass, volumeSize } };
}

function readAccess(access: KubernetesSettings['access']): Promise<ClusterAccess> {
  return access.kind === 'file' ? readKubeconfig(access.path) : readPodAccess(access.host, access.port);
}
