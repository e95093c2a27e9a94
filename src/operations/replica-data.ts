/**
 * A replica needs data before it starts. The data it has is kept if it can continue from there; else its primary is
 * copied, and woken for that: the replica's operation ends, and a new one waits for the start of the primary. The first
 * operation cannot wait itself, because the primary's start needs the branch exclusively.
 */
import type { ComputeSpec } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { queueStart } from '../core/endpoint.ts';
import { computeKeys, enqueue, wakePriority } from '../core/operation.ts';
import { lockEndpoint, selectReadWriteEndpoint } from '../db/endpoints.ts';
import { abandon, type ComputeTarget, done, type StepContext, type StepResult } from './step.ts';

/** After this many failures, the replica's data is taken to be the cause. */
const failuresMax = 3;
const wakesMax = 3;

/** Null when the replica can be started. */
export async function prepareReplica(
  context: StepContext,
  target: ComputeTarget,
  spec: ComputeSpec,
): Promise<StepResult | null> {
  const { operation, core } = context;
  const anew = operation.state.anew === true || operation.failuresCount >= failuresMax;
  if ((await context.driver.buildReplica(spec, anew)) !== 'needs_primary') return null;
  const primary = await selectReadWriteEndpoint(core.database.sql, target.branch.id);
  if (primary === undefined || primary.disabled) {
    return abandon('there is nothing to copy from: the branch has no read_write endpoint that may run');
  }
  const wakes = typeof operation.state.wakes === 'number' ? operation.state.wakes : 0;
  if (operation.job !== 'start_compute' || wakes >= wakesMax) return abandon('its primary does not run');
  return done(async (tx) => {
    const scope = commandScope(core, tx);
    if (primary.pendingState !== 'active') await queueStart(scope, primary, wakePriority);
    const state = { wakes: wakes + 1, anew };
    // It may have been moved meanwhile, and then needs the keys of its new branch.
    const replica = (await lockEndpoint(tx, target.endpoint.id)) ?? target.endpoint;
    await enqueue(scope, 'start_compute', { ...computeKeys(replica), state, priority: operation.priority });
  }, 'its primary is started first, to be copied');
}
