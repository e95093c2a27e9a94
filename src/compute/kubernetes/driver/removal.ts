/** Removes Clusters with all that belongs to them, and returns when it is gone. */
import type { KubernetesClient } from '../client/client.ts';
import type { Resource } from '../client/objects.ts';
import { adminSecretName, clusterLabel } from '../manifests/labels.ts';
import { clusters, pods, secrets, services, volumeClaims, volumeSnapshots } from '../objects/kinds.ts';
import { until } from './patience.ts';

const made: readonly Resource[] = [clusters, volumeSnapshots, secrets];
/** By the operator, which labels them with the name of their Cluster, whichever branch its data is of by now. */
const operators: readonly Resource[] = [pods, volumeClaims, services];

export async function removeLabelled(
  client: KubernetesClient,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  const names = (await client.list(clusters, labels)).items.map(({ metadata }) => metadata.name);
  for (const resource of made) {
    for (const { metadata } of (await client.list(resource, labels)).items) {
      // A Cluster goes after all that it owns, so that a repeated call finds what is still on its way.
      await client.remove(resource, metadata.name, { foreground: resource === clusters });
    }
  }
  for (const name of names) await client.remove(secrets, adminSecretName(name));
  const isGone = async (resource: Resource, by: Readonly<Record<string, string>>) =>
    (await client.list(resource, by)).items.length === 0;
  await until('removal', async () => {
    for (const resource of made) if (!(await isGone(resource, labels))) return false;
    for (const resource of operators) {
      for (const name of names) if (!(await isGone(resource, { [clusterLabel]: name }))) return false;
    }
    return true;
  });
}
