/** The one line about branches that are full copies, and what to do about that. */
import type { CloneMethod } from '../../compute/interface/driver-host.ts';

/** An image is mounted, which takes root; a home of an ordinary user is not served by root either. */
export function fullCopyAdvice(isRoot: boolean): string {
  return isRoot
    ? 'branches will be full copies: stop Catnap and run `catnap storage create --size 50G` to have them share blocks'
    : 'branches will be full copies: set CATNAP_HOME to a folder on XFS or btrfs to have them share blocks';
}

/** For the first start. Null where branches share blocks. */
export function fullCopyNote(method: CloneMethod | null, isRoot: boolean): string | null {
  return method === 'copy' ? fullCopyAdvice(isRoot) : null;
}
