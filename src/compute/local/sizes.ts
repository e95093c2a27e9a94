/** Sizes of running servers: changing them without a restart, and reading what they use. */
import type { ComputeLimits, ComputeSample, ResizeOutcome } from '../driver.ts';
import type { Cgroups } from './cgroups.ts';
import type { EndpointRef } from './host-interface.ts';
import { inspectCompute } from './hosted-computes.ts';
import type { Layout } from './layout.ts';
import { readProcessTree } from './process-tree.ts';
import { writeSizeConfig } from './server-files.ts';

interface Place {
  readonly cgroups: Cgroups;
  readonly layout: Layout;
}

export async function resizeCompute(
  { cgroups, layout }: Place,
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

export async function sampleComputes(place: Place, refs: readonly EndpointRef[]): Promise<ComputeSample[]> {
  const samples = await Promise.all(refs.map((ref) => sampleCompute(place, ref)));
  return samples.filter((sample) => sample !== null);
}

async function sampleCompute({ cgroups, layout }: Place, ref: EndpointRef): Promise<ComputeSample | null> {
  const { endpointId } = ref;
  const group = await cgroups.read(endpointId);
  if (group !== null) return { endpointId, isEnforced: true, ...group };
  const pid = (await inspectCompute(layout, ref))?.process?.pid;
  const tree = pid === undefined ? null : await readProcessTree(pid);
  return tree && { endpointId, isEnforced: false, ...tree };
}
