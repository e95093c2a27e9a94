/** The names under which the host locks things. */
import type { BranchRef } from '../driver.ts';
import type { EndpointRef } from './host-interface.ts';

export const branchLock = (ref: BranchRef) => `branch ${ref.projectId} ${ref.branchId}`;
export const endpointLock = (ref: EndpointRef) => `endpoint ${ref.projectId} ${ref.endpointId}`;
