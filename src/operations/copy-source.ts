/**
 * What the server of a branch reports before the branch is copied: its size, and its roles and databases. Roles and
 * passwords that were changed by SQL are in the copy, so the branch that gets the copy must know them.
 */
import type { SourceState } from '../compute/interface/driver.ts';
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import type { BranchId } from '../lib/ids.ts';
import type { StepContext } from './step.ts';
import { findCompute } from './target.ts';

/** `asleep` when no server runs, and the rows are all that is known. */
export async function readSource(
  context: StepContext,
  branchId: BranchId,
): Promise<SourceState | 'asleep' | 'starting'> {
  const compute = await selectReadWriteEndpoint(context.core.database.sql, branchId);
  const source = compute && (await findCompute(context, compute.id));
  if (source === undefined) return 'asleep';
  const seen = await context.driver.observe(source.ref);
  if (seen.state === 'starting') return 'starting';
  if (seen.state === 'absent') return 'asleep';
  const [catalog, bytes] = await Promise.all([
    context.driver.readCatalog(source.ref),
    context.driver.observeSize(source.ref),
  ]);
  return { catalog, bytes, isExact: false };
}
