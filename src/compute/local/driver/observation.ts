/** Turns what the host knows about a compute into what the driver reports. */

import type { ComputeAddress } from '../../../lib/model.ts';
import type { ComputeObservation } from '../../interface/driver.ts';
import type { EndpointRef, HostedCompute } from '../channel/host-calls.ts';

export const addressOf = (compute: HostedCompute): ComputeAddress => ({ kind: 'unix', path: compute.socketPath });

export function absent({ endpointId, projectId }: EndpointRef): ComputeObservation {
  const nothing = { pid: null, release: null, isEnforced: false, address: null, branchId: null };
  return { endpointId, projectId, state: 'absent', generation: 0, ...nothing };
}

export function observation(
  { endpointId, projectId }: Pick<EndpointRef, 'endpointId' | 'projectId'>,
  compute: HostedCompute,
  answers: boolean,
): ComputeObservation {
  return {
    endpointId,
    projectId,
    state: answers ? 'running' : 'starting',
    generation: compute.process?.generation ?? 0,
    pid: compute.process?.pid ?? null,
    release: compute.process?.release ?? null,
    isEnforced: compute.process?.isEnforced ?? false,
    address: answers ? addressOf(compute) : null,
    branchId: compute.process === null ? null : compute.branchId,
  };
}
