/** Tells the Clusters of read replicas from those of branches. */
import type { ComputeRef } from '../../interface/driver.ts';
import type { KubernetesClient } from '../client/client.ts';
import { clusterName, followsLabel, replicaLabel } from '../manifests/labels.ts';
import { type Cluster, clusters } from '../objects/kinds.ts';

export const isReplica = ({ metadata }: Cluster) => metadata.labels?.[replicaLabel] !== undefined;

/** Of this endpoint, and on this branch: a replica that has moved has no data there yet. */
export const isReplicaOf = ({ metadata }: Cluster, { endpointId, branchId }: ComputeRef) =>
  metadata.labels?.[replicaLabel] === endpointId && metadata.labels[followsLabel] === branchId;

/** Also one that is still being made. */
export async function findReplica(client: KubernetesClient, ref: ComputeRef): Promise<Cluster | null> {
  const found = await client.find(clusters, clusterName(ref.endpointId));
  if (found === null || found.metadata.deletionTimestamp !== undefined) return null;
  return isReplicaOf(found, ref) ? found : null;
}
