/**
 * A read replica as a Cluster of its own, in replica mode: its one instance is a hot standby over a copy of the
 * branch's volume, and streams from the server of the branch's Cluster. The operator never promotes it, and it has a
 * size and a sleep of its own.
 */
import type { ComputeSpec } from '../../interface/driver.ts';
import type { ClusterSpec } from '../objects/generated.ts';
import type { Cluster } from '../objects/kinds.ts';
import { clusterOn, type Platform, snapshotStorage } from './cluster.ts';
import { clusterName, directServiceName, followsLabel, labelsOfReplica } from './labels.ts';
import { settingsFor } from './settings.ts';

export interface ReplicaWish {
  readonly spec: ComputeSpec;
  /** Of the Cluster that holds the branch's data. */
  readonly primary: string;
  /** Of that Cluster's volume, ready to use. */
  readonly snapshot: string;
}

type Source = NonNullable<ClusterSpec['externalClusters']>[number];

const sourceName = 'primary';
/** The operator's login for replicas, which enters by certificate and can do nothing but replicate. */
const replicationUser = 'streaming_replica';

export function replicaManifest({ spec, primary, snapshot }: ReplicaWish, platform: Platform): Cluster {
  // Without the source the operator would not make a standby of the copy.
  const recovery = { source: sourceName, volumeSnapshots: { storage: snapshotStorage(snapshot) } };
  const {
    apiVersion,
    kind,
    metadata,
    spec: basis,
  } = clusterOn(
    {
      name: clusterName(spec.endpointId),
      labels: labelsOfReplicaData(spec),
      pgVersion: spec.pgVersion,
      settings: settingsFor({ ...spec, readOnly: true }),
      bootstrap: { recovery },
    },
    platform,
  );
  return {
    apiVersion,
    kind,
    metadata,
    spec: {
      ...basis,
      replica: { enabled: true, source: sourceName },
      externalClusters: [sourceOf(primary)],
      // For the name of its slot alone, which the operator has no field for. Only a superuser can use it.
      postgresql: { ...basis.postgresql, enableAlterSystem: true },
    },
  };
}

/** Of its Cluster and its snapshot. */
export const labelsOfReplicaData = (ref: Pick<ComputeSpec, 'projectId' | 'branchId' | 'endpointId'>) => ({
  ...labelsOfReplica(ref),
  [followsLabel]: ref.branchId,
});

/** By the Service that leads to a server before it is ready; the operator's certificate names it, too. */
function sourceOf(primary: string): Source {
  return {
    name: sourceName,
    connectionParameters: {
      host: directServiceName(primary),
      user: replicationUser,
      dbname: 'postgres',
      sslmode: 'verify-full',
      connect_timeout: '5',
    },
    sslKey: { name: `${primary}-replication`, key: 'tls.key' },
    sslCert: { name: `${primary}-replication`, key: 'tls.crt' },
    sslRootCert: { name: `${primary}-ca`, key: 'ca.crt' },
  };
}
