/** The names under which the host locks things. */
import type { BranchRef, ComputeRef } from '../../../interface/driver.ts';

export const branchLock = (ref: BranchRef) => `branch ${ref.projectId} ${ref.branchId}`;
export const endpointLock = (ref: Omit<ComputeRef, 'branchId'>) => `endpoint ${ref.projectId} ${ref.endpointId}`;
