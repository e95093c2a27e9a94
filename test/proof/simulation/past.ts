/** What has happened before a schedule: nothing, or how its stage was set. */
import type { RowOrder } from './row-order.ts';

export interface Past {
  readonly violations: readonly string[];
  readonly trace: readonly string[];
  readonly rows: RowOrder | null;
  readonly commandsSent: number;
}

export const nothingBefore: Past = { violations: [], trace: [], rows: null, commandsSent: 0 };
