/** The one line about branches that are full copies, and what to do about that. */
import type { CloneMethod } from '../../compute/interface/driver-host.ts';

export const fullCopyAdvice =
  'branches will be full copies: stop Catnap and run `catnap storage create --size 50G` as root to have them share blocks';

/** For the first start. Null where branches share blocks. */
export function fullCopyNote(method: CloneMethod | null): string | null {
  return method === 'copy' ? fullCopyAdvice : null;
}
