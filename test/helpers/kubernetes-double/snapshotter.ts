/** The double's snapshot controller: copies the volume that a VolumeSnapshot names, once. */
import type { KubernetesObject } from '../../../src/compute/kubernetes/client/objects.ts';
import type { VolumeSnapshot } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { now } from './cluster-status.ts';
import type { ObjectStore, StoredObject } from './object-store.ts';
import type { Volumes } from './volumes.ts';

const finalizer = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';
const plural = 'volumesnapshots';

export function isSnapshotReady(store: ObjectStore, name: string): boolean {
  const found = store.find(plural, name) as VolumeSnapshot | undefined;
  return found?.status?.readyToUse === true;
}

/** True when a snapshot has become ready. */
export async function takeSnapshot(store: ObjectStore, volumes: Volumes, name: string): Promise<boolean> {
  const found = store.find(plural, name) as (StoredObject & VolumeSnapshot) | undefined;
  if (found === undefined) return false;
  const hold = (finalizers: string[], status = found.status) =>
    store.update(plural, name, (it) => {
      const next = { ...it, metadata: { ...it.metadata, finalizers } };
      return (status === undefined ? next : { ...next, status }) as KubernetesObject;
    });
  if (found.metadata.deletionTimestamp !== undefined) {
    await volumes.removeSnapshot(name);
    hold([]);
    return false;
  }
  if (found.status !== undefined) return false;
  const claim = found.spec.source.persistentVolumeClaimName ?? '';
  if (store.find('persistentvolumeclaims', claim) === undefined) {
    hold([finalizer], { readyToUse: false, error: { message: 'cannot get claim from snapshot', time: now() } });
    return false;
  }
  hold([finalizer], { readyToUse: false });
  try {
    await volumes.snapshot(claim, name);
  } catch (error) {
    // As the real one does: a snapshot that never says anything would be waited for until the test's time is over.
    hold([finalizer], { readyToUse: false, error: { message: String(error), time: now() } });
    return false;
  }
  hold([finalizer], { readyToUse: true, restoreSize: '1Gi', creationTime: now() });
  return true;
}
