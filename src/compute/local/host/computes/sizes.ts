/** Sizes of running servers: changing them without a restart, and reading what the servers use. */
import { setImmediate } from 'node:timers/promises';
import type { ComputeLimits } from '../../../../lib/model.ts';
import type { ComputeSample, ResizeOutcome } from '../../../interface/driver.ts';
import type { EndpointRef } from '../../channel/host-calls.ts';
import type { Cgroups } from '../cgroups/compute-groups.ts';
import { readProcessTree } from '../cgroups/process-tree.ts';
import type { Layout } from '../home/layout.ts';
import { writeSizeConfig } from '../postgres/server-files.ts';
import { inspectCompute } from './inspect.ts';

/** Reading one sample takes a tenth of a millisecond. */
const samplesAtOnce = 50;

interface SizeParts {
  readonly cgroups: Cgroups;
  readonly layout: Layout;
}

export async function resizeCompute(
  { cgroups, layout }: SizeParts,
  ref: EndpointRef,
  generation: number,
  limits: ComputeLimits,
): Promise<ResizeOutcome> {
  const process_ = (await inspectCompute(layout, ref))?.process;
  if (process_?.generation !== generation) throw new Error(`compute ${ref.endpointId} is not running`);
  if (!process_.isEnforced) return 'not_enforced';
  const outcome = await cgroups.resize(ref.endpointId, limits);
  const directory = layout.endpoint(ref.projectId, ref.endpointId);
  const isChanged = await writeSizeConfig(directory, limits.settings, ref.tenantUid);
  if (isChanged) process.kill(process_.pid, 'SIGHUP');
  return outcome;
}

export async function sampleComputes(parts: SizeParts, refs: readonly EndpointRef[]): Promise<ComputeSample[]> {
  const samples: ComputeSample[] = [];
  for (let from = 0; from < refs.length; from += samplesAtOnce) {
    const read = await Promise.all(refs.slice(from, from + samplesAtOnce).map((ref) => sampleCompute(parts, ref)));
    samples.push(...read.filter((sample) => sample !== null));
    // Lets a wake run before all samples are read.
    await setImmediate();
  }
  return samples;
}

async function sampleCompute({ cgroups, layout }: SizeParts, ref: EndpointRef): Promise<ComputeSample | null> {
  const { endpointId } = ref;
  const group = await cgroups.read(endpointId);
  if (group !== null) return { endpointId, isEnforced: true, ...group };
  const pid = (await inspectCompute(layout, ref))?.process?.pid;
  const tree = pid === undefined ? null : await readProcessTree(pid);
  return tree && { endpointId, isEnforced: false, ...tree };
}
