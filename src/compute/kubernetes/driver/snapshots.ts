/** Copies of volumes: taken anew, and waited for. */
import type { KubernetesClient } from '../client/client.ts';
import { type VolumeSnapshot, volumeSnapshots } from '../objects/kinds.ts';
import { until, untilObject } from './patience.ts';

/** Returns when it is ready to use. */
export async function takeSnapshot(client: KubernetesClient, snapshot: VolumeSnapshot): Promise<void> {
  await replaceSnapshot(client, snapshot);
  await untilReadyToUse(client, snapshot);
}

/**
 * One of this name that is there already is not used: it is of an earlier attempt, or of an earlier copy and on its
 * way out, and then it says that it is ready and is gone before the Cluster can read it.
 */
function replaceSnapshot(client: KubernetesClient, snapshot: VolumeSnapshot): Promise<void> {
  const { name } = snapshot.metadata;
  return until(`removal of an older snapshot: ${name}`, async () => {
    if (await client.create(volumeSnapshots, snapshot)) return true;
    await client.remove(volumeSnapshots, name);
    return false;
  });
}

async function untilReadyToUse(client: KubernetesClient, { metadata }: VolumeSnapshot): Promise<void> {
  const { name, labels = {} } = metadata;
  const which = { resource: volumeSnapshots, labels, name };
  const hasEnded = ({ status }: VolumeSnapshot) => status?.readyToUse === true || status?.error !== undefined;
  const { error } = (await untilObject(client, which, hasEnded))?.status ?? { error: { message: 'it is gone' } };
  if (error === undefined) return;
  // The next attempt makes a new one.
  await client.remove(volumeSnapshots, name);
  throw new Error(`the volume cannot be copied: ${error.message}`);
}
