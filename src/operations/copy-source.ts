/**
 * Where the data of a new or restored branch comes from. Of a head, its server reports size, roles and databases before
 * it is copied: what was changed by SQL is in the copy, so the branch that gets the copy must know it. Of a moment of
 * the past, the copy itself is asked.
 */
import type { BranchCopy, BranchSpec, SourceState, TenantRef } from '../compute/interface/driver.ts';
import { selectPrimaryInPlace } from '../db/endpoints.ts';
import { asBranchId, type BranchId } from '../lib/ids.ts';
import type { Moment } from '../lib/moments.ts';
import type { StepContext } from './step.ts';
import { adminSecretOf, type BranchTarget, findCompute } from './target.ts';

export interface Past {
  readonly branchId: BranchId;
  readonly moment: Moment;
}

/** As the command has resolved it; null for a copy of a head. */
export function pastOf({ operation }: StepContext): Past | null {
  const past = operation.state.past as { branchId: string; moment: Moment } | undefined;
  return past === undefined ? null : { branchId: asBranchId(past.branchId), moment: past.moment };
}

/** A copy that an earlier try has left does not say what it holds any more, so it is made again: nothing serves it. */
export async function copyPast(
  context: StepContext,
  { project, ref }: { readonly project: BranchTarget['project']; readonly ref: TenantRef },
  branchId: BranchId,
  past: Past,
): Promise<BranchCopy & { readonly source: SourceState }> {
  const source = { kind: 'history', ...past, adminSecret: adminSecretOf(context, project) } as const;
  const spec: BranchSpec = { ...ref, branchId, pgVersion: project.pgVersion, source };
  const found = await context.driver.createBranch(spec);
  if (found.source !== null) return { ...found, source: found.source };
  await context.driver.removeBranch(spec);
  const made = await context.driver.createBranch(spec);
  if (made.source === null) throw new Error('the driver did not say what the branch holds');
  return { ...made, source: made.source };
}

/** `asleep` when no server runs, and the rows are all that is known. */
export async function readSource(
  context: StepContext,
  branchId: BranchId,
): Promise<SourceState | 'asleep' | 'starting'> {
  const compute = await selectPrimaryInPlace(context.core.database.sql, branchId);
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
