/** Turns what Kubernetes says of a compute into what the driver reports. */
import type { ComputeObservation, ComputeRef } from '../../interface/driver.ts';
import { releaseOf } from '../manifests/images.ts';
import type { Cluster } from '../objects/kinds.ts';
import type { FoundServer } from './compute-servers.ts';

type Ref = Pick<ComputeRef, 'endpointId' | 'projectId' | 'branchId'>;

export function absent({ endpointId, projectId }: Ref): ComputeObservation {
  const nothing = { pid: null, release: null, isEnforced: false, address: null, branchId: null };
  return { endpointId, projectId, state: 'absent', generation: 0, ...nothing };
}

/** `began` is null for a server that does not answer yet. */
export function observation(
  { endpointId, projectId, branchId }: Ref,
  { cluster, address, generation }: FoundServer,
  began: number | null,
): ComputeObservation {
  return {
    endpointId,
    projectId,
    state: began === null ? 'starting' : 'running',
    generation,
    pid: began,
    release: releaseOf(cluster.spec.imageName ?? ''),
    isEnforced: true,
    address: began === null ? null : address,
    branchId,
  };
}

export const majorOf = ({ spec }: Cluster) => Number.parseInt(releaseOf(spec.imageName ?? ''), 10);
