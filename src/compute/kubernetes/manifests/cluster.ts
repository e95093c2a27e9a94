/**
 * A branch's data as a CloudNativePG Cluster. There is one for each branch, whether a compute serves it or not; which
 * compute does, and in which generation, is not part of it. That of a read replica (`replica.ts`) is alike. A Cluster
 * never changes its size: an edit of `spec.resources` makes the operator replace the pod, so sizes are given to the pod
 * itself (`sizes.ts`).
 */
import type { BranchRef } from '../../interface/driver.ts';
import { adminDatabase, adminRole, spareDatabase } from '../../interface/own-logins.ts';
import { apiVersionOf } from '../client/objects.ts';
import type { ClusterSpec } from '../objects/generated.ts';
import { type Cluster, clusters, volumeSnapshots } from '../objects/kinds.ts';
import { adminSecretName, clusterName, directServiceName, labelsOfBranch } from './labels.ts';
import { loginRules, postgresqlOf } from './settings.ts';
import { startResources } from './sizes.ts';

/** What an administrator chooses once for all computes. */
export interface Platform {
  readonly namespace: string;
  /** Image of each major, with a tag that begins with its number, by which the operator knows it. */
  readonly images: Readonly<Record<number, string>>;
  /** Null for the cluster's default. */
  readonly storageClass: string | null;
  readonly snapshotClass: string | null;
  /** Size of each volume, such as `10Gi`. */
  readonly volumeSize: string;
}

export type DataSource =
  | { readonly kind: 'empty' }
  /** The volume of another branch, as a VolumeSnapshot that is ready to use. */
  | { readonly kind: 'snapshot'; readonly name: string };

export interface ClusterWish extends BranchRef {
  readonly pgVersion: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly source: DataSource;
}

/** What Clusters of branches and of replicas have alike. */
export interface ClusterBasis {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly pgVersion: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly bootstrap: Bootstrap;
}

type Bootstrap = NonNullable<ClusterSpec['bootstrap']>;
type Services = NonNullable<NonNullable<ClusterSpec['managed']>['services']>;

/** `name` differs from that of the branch when another branch's data has that name since an exchange. */
export function clusterManifest(wish: ClusterWish, platform: Platform, name = clusterName(wish.branchId)): Cluster {
  const { pgVersion, settings } = wish;
  return clusterOn(
    { name, labels: labelsOfBranch(wish), pgVersion, settings, bootstrap: bootstrapOf(wish, name) },
    platform,
  );
}

export function clusterOn(basis: ClusterBasis, platform: Platform): Cluster {
  const { name, labels, pgVersion, settings, bootstrap } = basis;
  const image = platform.images[pgVersion];
  if (image === undefined) throw new Error(`no image of Postgres ${pgVersion} is configured`);
  const { storageClass, volumeSize: size } = platform;
  return {
    apiVersion: apiVersionOf(clusters),
    kind: clusters.kind,
    metadata: { name, namespace: platform.namespace, labels },
    spec: {
      instances: 1,
      imageName: image,
      // Volumes, pods, Services and Secrets of the operator's get them as well.
      inheritedMetadata: { labels },
      // A budget of one instance of one would keep a node from ever being drained.
      enablePDB: false,
      enableSuperuserAccess: false,
      // Clients of a compute that falls asleep are the proxy's business; the operator's default is three minutes.
      smartShutdownTimeout: 1,
      stopDelay: 60,
      // Runs only until the server is up. The others keep their defaults: nobody waits for them, and each costs CPU.
      probes: { startup: { periodSeconds: 1 } },
      storage: storageClass === null ? { size } : { size, storageClass },
      resources: startResources,
      bootstrap,
      postgresql: { ...postgresqlOf(settings), pg_hba: loginRules },
      managed: { services: servicesOf(name) },
    },
  };
}

/** Catnap's own login and its two databases, which a copy brings along. */
function bootstrapOf({ source, pgVersion }: ClusterWish, name: string): Bootstrap {
  const own = { database: adminDatabase, owner: adminRole, secret: { name: adminSecretName(name) } };
  if (source.kind === 'snapshot') {
    return { recovery: { ...own, volumeSnapshots: { storage: snapshotStorage(source.name) } } };
  }
  // As on one machine: texts sort by bytes, and no library of an image decides it, so that none can break an index.
  const builtin = pgVersion >= 17 ? { localeProvider: 'builtin', builtinLocale: 'C.UTF-8' } : {};
  const locale = { encoding: 'UTF8', localeCollate: 'C', localeCType: 'C', ...builtin };
  const postInitSQL = [
    `ALTER ROLE ${adminRole} SUPERUSER`,
    `CREATE DATABASE ${spareDatabase} OWNER ${adminRole} TEMPLATE template0`,
  ];
  return { initdb: { ...own, ...locale, dataChecksums: true, postInitSQL } };
}

export function snapshotStorage(name: string) {
  const { group: apiGroup, kind } = volumeSnapshots;
  return { apiGroup, kind, name };
}

/** The proxy dials a server that has just started before its pod is ready; nobody uses the Services for reading. */
function servicesOf(name: string): Services {
  const direct = {
    selectorType: 'rw',
    serviceTemplate: {
      metadata: { name: directServiceName(name) },
      spec: { publishNotReadyAddresses: true },
    },
  } as const;
  return { disabledDefaultServices: ['r', 'ro'], additional: [direct] };
}
