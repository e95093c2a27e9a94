/** The one line about branches that are full copies, and what to do about it. */
import { detectCloneMethod } from '../../compute/local/clone-method.ts';
import type { Layout } from '../../compute/local/layout.ts';

export const fullCopyAdvice =
  'branches will be full copies: stop Catnap and run `catnap storage create --size 50G` as root to have them share blocks';

/** For the first start. Null where branches share blocks. */
export async function fullCopyNote(layout: Layout): Promise<string | null> {
  return (await detectCloneMethod(layout.root)) === 'copy' ? fullCopyAdvice : null;
}
