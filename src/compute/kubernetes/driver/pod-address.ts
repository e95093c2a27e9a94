/** Where the server of a pod takes connections: the pod itself, which answers before any Service leads to it. */
import { isGone } from '../../server/probe.ts';
import type { KubernetesClient } from '../client/client.ts';
import { serverContainer } from '../manifests/sizes.ts';
import { readinessOf } from '../manifests/sleep.ts';
import { type Cluster, type Pod, pods } from '../objects/kinds.ts';

/** As the operator names it in its pods. */
const serverPort = 'postgresql';

/** Computes here are reached over the network alone. */
export interface PodAddress {
  readonly kind: 'tcp';
  readonly host: string;
  readonly port: number;
}

/** Null while the pod has no address, and for one that is on its way out. */
export function addressOf({ metadata, spec, status }: Pod): PodAddress | null {
  const container = spec.containers.find(({ name }) => name === serverContainer);
  const port = container?.ports?.find(({ name }) => name === serverPort)?.containerPort;
  if (status?.podIP === undefined || port === undefined || metadata.deletionTimestamp !== undefined) return null;
  return { kind: 'tcp', host: status.podIP, port };
}

/** The pod in which the primary runs, or would run; null in deep sleep. */
export async function podOf(client: KubernetesClient, cluster: Cluster): Promise<Pod | null> {
  const { primary } = readinessOf(cluster);
  return primary === null ? null : client.find(pods, primary);
}

/** Whether the server in it has ended. A fence is carried out up to 25 seconds after it is written. */
export async function isStill(pod: Pod | null): Promise<boolean> {
  if (pod === null) return true;
  const address = addressOf(pod);
  return address === null ? pod.metadata.deletionTimestamp === undefined : isGone(address);
}
