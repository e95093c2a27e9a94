/** Deep sleep: computes that have napped for long lose their pods, and free what these had reserved on their nodes. */
import type { KubernetesClient } from '../client/client.ts';
import { asleepAnnotation, labelsOfEverything } from '../manifests/labels.ts';
import { deepSleepPatch, wantedDepth } from '../manifests/sleep.ts';
import { type Cluster, clusters } from '../objects/kinds.ts';

/** Returns how many there were. One that is woken at this very moment stays awake. */
export async function deepenSleep(client: KubernetesClient, afterSeconds: number, now = new Date()): Promise<number> {
  const latest = new Date(now.getTime() - afterSeconds * 1_000).toISOString();
  const isDue = (cluster: Cluster) => {
    const since = cluster.metadata.annotations?.[asleepAnnotation];
    return wantedDepth(cluster) === 'nap' && since !== undefined && since <= latest;
  };
  let count = 0;
  for (const found of (await client.list(clusters, labelsOfEverything)).items.filter(isDue)) {
    if (await deepen(client, found, isDue)) count++;
  }
  return count;
}

/** False for one that has changed meanwhile, and is not due any more. */
export async function deepen(
  client: KubernetesClient,
  { metadata }: Cluster,
  isDue: (current: Cluster) => boolean,
): Promise<boolean> {
  let isDeeper = false;
  await client.change(clusters, metadata.name, (current) => {
    isDeeper = isDue(current);
    return isDeeper ? deepSleepPatch : null;
  });
  return isDeeper;
}
