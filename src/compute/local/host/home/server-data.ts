/** Where the data of a server is: with the branch, or, for a read replica, with the endpoint, in the same structure. */
import type { EndpointId } from '../../../../lib/ids.ts';
import type { BranchRef } from '../../../interface/driver.ts';
import { dataDirectory, type Layout } from './layout.ts';

export interface DataRef extends BranchRef {
  readonly endpointId?: EndpointId;
  /** Set for a read replica's own copy instead of the branch's data. */
  readonly readOnly?: boolean | undefined;
}

/** The directory that holds `pgdata` and its record. */
export function dataHome(layout: Layout, ref: DataRef): string {
  return ref.readOnly && ref.endpointId
    ? layout.replica(ref.projectId, ref.endpointId)
    : layout.branch(ref.projectId, ref.branchId);
}

export const dataDirectoryOf = (layout: Layout, ref: DataRef) => dataDirectory(dataHome(layout, ref));
