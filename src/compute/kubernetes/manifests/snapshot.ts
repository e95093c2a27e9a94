/** A copy of a branch's volume, from which another branch or a read replica is made. */
import type { BranchRef } from '../../interface/driver.ts';
import { apiVersionOf } from '../client/objects.ts';
import { type VolumeSnapshot, volumeSnapshots } from '../objects/kinds.ts';
import type { Platform } from './cluster.ts';
import { labelsOfBranch, snapshotName } from './labels.ts';

/**
 * Belongs to the child: the source may be removed while a copy of it is still being made. Of a server that is stopped
 * it is exact; of one that runs it is what a crash would leave, if the storage takes it in one moment: data and log are
 * on one volume, and Postgres recovers from that as from a power cut.
 */
export function snapshotFor(
  childId: string,
  labels: Readonly<Record<string, string>>,
  volumeClaim: string,
  { namespace, snapshotClass }: Platform,
): VolumeSnapshot {
  const source = { persistentVolumeClaimName: volumeClaim };
  return {
    apiVersion: apiVersionOf(volumeSnapshots),
    kind: volumeSnapshots.kind,
    metadata: { name: snapshotName(childId), namespace, labels },
    spec: snapshotClass === null ? { source } : { source, volumeSnapshotClassName: snapshotClass },
  };
}

export const snapshotManifest = (child: BranchRef, volumeClaim: string, platform: Platform): VolumeSnapshot =>
  snapshotFor(child.branchId, labelsOfBranch(child), volumeClaim, platform);
