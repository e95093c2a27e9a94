/**
 * The cluster that KUBECONFIG names, and what the tests on it need to see of its one namespace. Settings are those of
 * the program (`CATNAP_KUBERNETES_IMAGE_17` and so on), except that the kubeconfig is where kubectl looks for it.
 */
import { resolve } from 'node:path';
import { readKubeconfig } from '../../../src/compute/kubernetes/client/access.ts';
import { KubernetesClient } from '../../../src/compute/kubernetes/client/client.ts';
import type { KubernetesObject } from '../../../src/compute/kubernetes/client/objects.ts';
import type { Platform } from '../../../src/compute/kubernetes/manifests/cluster.ts';
import { projectLabel } from '../../../src/compute/kubernetes/manifests/labels.ts';
import {
  clusters,
  pods,
  secrets,
  services,
  volumeClaims,
  volumeSnapshots,
} from '../../../src/compute/kubernetes/objects/kinds.ts';
import { openCluster } from '../../../src/compute/kubernetes/open-client.ts';
import { readConfig } from '../../../src/lib/config.ts';
import { eventually } from '../eventually.ts';

export interface ChosenCluster {
  readonly client: KubernetesClient;
  readonly platform: Platform;
  /** The newest major that an image is configured for. */
  readonly pgVersion: number;
  /** What a Catnap on this cluster is started with. */
  readonly environment: Readonly<Record<string, string>>;
  readonly kubeconfig: string;
  /** In another namespace of the same cluster. */
  clientIn(namespace: string): Promise<KubernetesClient>;
  /** Objects that were not there at first, once all that is on its way out has gone. */
  newcomers(): Promise<string[]>;
  close(): void;
}

const kinds = [clusters, pods, services, volumeClaims, volumeSnapshots, secrets];

export async function openChosenCluster(): Promise<ChosenCluster> {
  const { KUBECONFIG = '' } = process.env;
  if (KUBECONFIG === '') throw new Error('KUBECONFIG names no cluster: `npm run test:kubernetes` says what it needs');
  const kubeconfig = resolve(KUBECONFIG);
  const environment = {
    ...ownSettings(),
    CATNAP_DRIVER: 'kubernetes',
    CATNAP_KUBERNETES_CONFIG: kubeconfig,
    CATNAP_KUBERNETES_VOLUME_SIZE: process.env.CATNAP_KUBERNETES_VOLUME_SIZE ?? '1Gi',
  };
  const { kubernetes } = readConfig(environment);
  if (kubernetes === undefined) throw new Error('BUG: the driver is chosen and has no settings');
  const { client, platform } = await openCluster(kubernetes);
  const opened = [client];
  const list = async () => {
    const found: KubernetesObject[] = [];
    for (const kind of kinds) {
      const { items } = await client.list(kind);
      // Items of a list do not say their kind.
      found.push(...items.map((item) => ({ ...item, kind: kind.plural })));
    }
    return found;
  };
  const atFirst = new Set((await list()).map(({ metadata }) => metadata.uid));
  return {
    client,
    platform,
    pgVersion: Math.max(...Object.keys(platform.images).map(Number)),
    environment,
    kubeconfig,
    async clientIn(namespace) {
      const other = new KubernetesClient({ ...(await readKubeconfig(kubeconfig)), namespace });
      opened.push(other);
      return other;
    },
    newcomers: () =>
      eventually(async () => {
        const found = (await list()).filter(({ metadata }) => !atFirst.has(metadata.uid));
        const leaving = found.filter((one) => isLeaving(one, found)).map(nameOf);
        if (leaving.length > 0) throw new Error(`objects are on their way out for too long: ${leaving.join(', ')}`);
        return found.map(nameOf);
      }),
    close() {
      for (const one of opened) one.close();
    },
  };
}

function ownSettings(): Record<string, string> {
  const isOwn = (entry: [string, string | undefined]): entry is [string, string] =>
    /^CATNAP_(KUB|PG_BIN)/.test(entry[0]);
  return Object.fromEntries(Object.entries(process.env).filter(isOwn));
}

/** Being deleted, or owned by a Cluster that is gone: the garbage collector takes it in its own time. */
function isLeaving({ metadata }: KubernetesObject, all: readonly KubernetesObject[]): boolean {
  if (metadata.deletionTimestamp !== undefined) return true;
  const owners = (metadata.ownerReferences ?? []).filter(({ kind }) => kind === clusters.kind);
  return owners.some(({ uid }) => !all.some((one) => one.metadata.uid === uid));
}

const nameOf = ({ kind, metadata }: KubernetesObject) =>
  `${metadata.labels?.[projectLabel] ?? 'nobody'}/${kind}/${metadata.name}`;
