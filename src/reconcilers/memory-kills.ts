/** Puts on record that the kernel ended processes of a compute for want of memory: Postgres recovers by itself. */
import type { ComputeSample } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import { memoryBytes } from '../core/sizing.ts';
import { lockEndpoint } from '../db/endpoints.ts';
import { lockProject } from '../db/projects.ts';
import { type RunningCompute, recordKills } from '../db/sizes.ts';
import { onItsOwn, type ReconcilerParts } from './reconciler.ts';

interface Seen {
  readonly compute: RunningCompute;
  readonly sample: ComputeSample;
}

export async function reportMemoryKills(parts: ReconcilerParts, seen: readonly Seen[]): Promise<void> {
  for (const { compute, sample } of seen) {
    if (sample.oomKills <= compute.knownKills) continue;
    await onItsOwn(parts, compute.endpointId, () => report(parts, compute, sample));
  }
}

async function report(
  { core, log }: ReconcilerParts,
  { projectId, endpointId, generation, server }: RunningCompute,
  { memoryLimitBytes, usedBytes, oomKills }: ComputeSample,
): Promise<void> {
  await core.database.transaction(async (tx) => {
    const endpoint = (await lockProject(tx, projectId)) && (await lockEndpoint(tx, endpointId));
    const kills = endpoint === undefined ? 0 : await recordKills(tx, endpointId, generation, oomKills);
    if (endpoint === undefined || kills === 0) return;
    log.warn({ endpoint: endpointId, kills, memoryLimitBytes, usedBytes }, 'a compute ran out of memory');
    // The limit of this moment may be a smaller one: what was killed is not in use any more.
    const { maxCu } = server.given;
    const finding =
      `the kernel ended ${kills} of the server's processes: its memory limit was reached, which is ` +
      `${memoryBytes(maxCu) / 1024 ** 2} MiB at ${maxCu} CU, the largest size that it may have; ` +
      'Postgres restarted the others, and their sessions dropped';
    await enqueue(commandScope(core, tx), 'check_availability', { ...computeKeys(endpoint), state: { finding } });
  });
}
