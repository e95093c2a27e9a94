/**
 * Servers that have ended and that nobody starts again. CloudNativePG's instance manager takes the end of a server in
 * the first seconds after a wake for a part of the wake: it waits for that server, for up to an hour, starts no other
 * one and carries out no fence meanwhile. What helps is a new pod, whose manager begins by starting its server.
 */
import { refuses } from '../../server/probe.ts';
import type { KubernetesClient } from '../client/client.ts';
import { labelsOfEverything } from '../manifests/labels.ts';
import { serverContainer } from '../manifests/sizes.ts';
import { readinessOf, wantedDepth } from '../manifests/sleep.ts';
import { type Cluster, clusters, type Pod, pods } from '../objects/kinds.ts';
import { addressOf, podOf } from './pod-address.ts';

/** How long nothing may listen before its pod is replaced: a server listens from its first moment, also in recovery. */
const silentMsMax = 10_000;
/** A manager that has just begun may not have come to its server yet; if that one ends, the manager ends with it. */
const youngMs = 30_000;

export class StalledServers {
  readonly #client: KubernetesClient;
  /** When nothing was first seen to listen in a pod, by the pod's uid. */
  #silentSince: ReadonlyMap<string, number> = new Map();

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  /** Returns the names of the pods that it has deleted; the operator makes others in their place. */
  async look(now = new Date()): Promise<readonly string[]> {
    const { items } = await this.#client.list(clusters, labelsOfEverything);
    const silent = new Map<string, number>();
    const removed: string[] = [];
    const lookAt = async (cluster: Cluster) => {
      const pod = await this.#silentPod(cluster, now);
      if (pod?.metadata.uid === undefined) return;
      const { name, uid } = pod.metadata;
      const since = this.#silentSince.get(uid) ?? now.getTime();
      silent.set(uid, since);
      if (now.getTime() - since < silentMsMax) return;
      // One that is asleep by now is silent for a good reason.
      const current = await this.#client.find(clusters, cluster.metadata.name);
      if (current === null || !isSuspect(current)) return;
      if (await this.#client.remove(pods, name, { uid })) removed.push(name);
    };
    await Promise.all(items.filter(isSuspect).map(lookAt));
    this.#silentSince = silent;
    return removed;
  }

  /**
   * Both the kubelet's probes and a connection of our own have to fail: where only one of them does, the network is in
   * trouble and not the server.
   */
  async #silentPod(cluster: Cluster, now: Date): Promise<Pod | null> {
    const pod = await podOf(this.#client, cluster);
    const address = pod && addressOf(pod);
    if (pod === null || address === null || isReady(pod) || runningMs(pod, now) < youngMs) return null;
    return (await refuses(address)) ? pod : null;
  }
}

/** It should serve, and the operator counts no instance that does. */
const isSuspect = (cluster: Cluster) =>
  cluster.metadata.deletionTimestamp === undefined && wantedDepth(cluster) === 'awake' && !readinessOf(cluster).isReady;

const isReady = ({ status }: Pod) =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false;

/** 0 for a container that is not running: the kubelet is about to start it, or waits before it does so again. */
function runningMs({ status }: Pod, now: Date): number {
  const container = status?.containerStatuses?.find(({ name }) => name === serverContainer);
  const startedAt = container?.state?.running?.startedAt;
  return startedAt === undefined ? 0 : now.getTime() - Date.parse(startedAt);
}
