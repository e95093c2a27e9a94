/** The kinds of objects that Catnap makes or reads in a cluster. Those of Kubernetes itself only as far as it does. */
import type { KubernetesObject, Resource } from '../client/objects.ts';
import type { ClusterSpec, ClusterStatus, VolumeSnapshotSpec, VolumeSnapshotStatus } from './generated.ts';

/** A branch's data and the server on it. */
export interface Cluster extends KubernetesObject {
  readonly spec: ClusterSpec;
  readonly status?: ClusterStatus;
}

export interface VolumeSnapshot extends KubernetesObject {
  readonly spec: VolumeSnapshotSpec;
  readonly status?: VolumeSnapshotStatus;
}

/** Values of `data` are base64; `stringData` is written, never read. */
export interface Secret extends KubernetesObject {
  readonly type: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

/** No interface, which could have fields beside these: a schema takes any name. */
export type ResourceAmounts = Readonly<Record<'cpu' | 'memory', string>>;

export interface ContainerResources {
  readonly requests: ResourceAmounts;
  readonly limits: ResourceAmounts;
}

interface PodContainer {
  readonly name: string;
  readonly resources?: ContainerResources;
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
}

export interface Pod extends KubernetesObject {
  readonly spec: {
    /** None until the scheduler has found one. */
    readonly nodeName?: string;
    readonly containers: readonly PodContainer[];
    readonly initContainers?: readonly PodContainer[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    /** Resources here are those in force; those of the spec may still be on their way. */
    readonly containerStatuses?: readonly (PodContainer & {
      readonly containerID?: string;
      readonly state?: { readonly running?: { readonly startedAt?: string } };
    })[];
  };
}

export const clusters: Resource<Cluster> = {
  group: 'postgresql.cnpg.io',
  version: 'v1',
  plural: 'clusters',
  kind: 'Cluster',
};
export const volumeSnapshots: Resource<VolumeSnapshot> = {
  group: 'snapshot.storage.k8s.io',
  version: 'v1',
  plural: 'volumesnapshots',
  kind: 'VolumeSnapshot',
};
export const secrets: Resource<Secret> = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' };
export const pods: Resource<Pod> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod' };
/** Made by the operator; Catnap only looks whether any are left. */
export const volumeClaims: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
};
export const services: Resource = { group: '', version: 'v1', plural: 'services', kind: 'Service' };
