/** Records that the kernel killed processes of a compute that ran out of memory: Postgres recovers by itself. */
import type { ComputeSample } from '../compute/interface/driver.ts';
import { computeKeys, enqueue } from '../core/operation.ts';
import { memoryBytes } from '../core/sizing.ts';
import { type RunningCompute, recordKills } from '../db/sizes.ts';
import { actIfStill } from './recheck.ts';
import type { Item, ReconcilerParts } from './reconciler.ts';

interface Seen {
  readonly compute: RunningCompute;
  readonly sample: ComputeSample;
}

export function memoryKillReports(parts: ReconcilerParts, seen: readonly Seen[]): Item[] {
  const killed = seen.filter(({ compute, sample }) => sample.oomKills > compute.knownKills);
  return killed.map(({ compute, sample }) => ({ subject: compute.id, work: () => report(parts, compute, sample) }));
}

async function report({ core, log }: ReconcilerParts, compute: RunningCompute, sample: ComputeSample): Promise<void> {
  const { memoryLimitBytes, usedBytes, oomKills } = sample;
  await actIfStill(
    core,
    compute,
    () => true,
    async (scope, endpoint) => {
      const kills = await recordKills(scope.tx, compute.id, compute.generation, oomKills);
      if (kills === 0) return;
      log.warn({ endpoint: compute.id, kills, memoryLimitBytes, usedBytes }, 'a compute ran out of memory');
      // The current limit may be smaller: the memory of what was killed is no longer in use.
      const { maxCu } = compute.server.given;
      const finding =
        `the kernel ended ${kills} of the server's processes: its memory limit was reached, which is ` +
        `${memoryBytes(maxCu) / 1024 ** 2} MiB at ${maxCu} CU, the largest size that it may have; ` +
        'Postgres restarted the others, and their sessions dropped';
      await enqueue(scope, 'check_availability', { ...computeKeys(endpoint), state: { finding } });
    },
  );
}
