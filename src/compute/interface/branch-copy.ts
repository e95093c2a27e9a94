/** What comes of copying a branch: the receipt, and what the server that was copied from said meanwhile. */

import type { ServerCatalog } from '../../lib/model.ts';
import type { BranchReceipt } from './driver.ts';

/** What the running server of a branch said while the branch was copied. */
export interface SourceState {
  readonly catalog: ServerCatalog;
  /** Size of its databases; null when it did not say. */
  readonly bytes: number | null;
  /** The copy holds exactly this catalog: nothing was written to the server while it was read and copied. */
  readonly isExact: boolean;
}

export interface BranchCopy {
  readonly receipt: BranchReceipt;
  /** Null when no server ran, or the data were there already. */
  readonly source: SourceState | null;
}
