/**
 * Which compute serves a Cluster, and in which generation: written on the Cluster in the same patch that wakes it, so
 * that no other compute can take it over in between. Pure.
 */
import { type ComputeRef, StaleGenerationError } from '../../interface/driver.ts';
import type { MergePatch } from '../client/client.ts';
import { asleepAnnotation, endpointAnnotation, generationAnnotation, settingsAnnotation } from '../manifests/labels.ts';
import { postgresqlOf } from '../manifests/settings.ts';
import { napPatch, wakePatch, wantedDepth } from '../manifests/sleep.ts';
import type { Cluster } from '../objects/kinds.ts';

export interface Serving {
  readonly ref: ComputeRef;
  readonly generation: number;
  readonly settings: Readonly<Record<string, string>>;
  /** Left out, the image stays as it is. */
  readonly image?: string;
}

/** Which compute was the last to serve it, whether it sleeps now or not; null for a Cluster that none has served. */
export function servedBy({ metadata }: Cluster): { readonly endpointId: string; readonly generation: number } | null {
  const endpointId = metadata.annotations?.[endpointAnnotation];
  if (endpointId === undefined) return null;
  return { endpointId, generation: Number(metadata.annotations?.[generationAnnotation] ?? 0) };
}

export function isServedBy(cluster: Cluster, { endpointId }: Pick<ComputeRef, 'endpointId'>): boolean {
  return servedBy(cluster)?.endpointId === endpointId && wantedDepth(cluster) === 'awake';
}

export function refuseStale(current: Cluster, { endpointId }: ComputeRef, generation: number): void {
  const serves = servedBy(current);
  if (serves?.endpointId !== endpointId || generation >= serves.generation) return;
  throw new StaleGenerationError(endpointId, generation, serves.generation);
}

/**
 * The next thing to do for a compute that is to serve a Cluster. A server of an older generation is stopped first;
 * `wake` may be written only when no server is left of the one before. Fails when another compute serves it, or a newer
 * generation of this one.
 */
export function nextStep(current: Cluster, { ref, generation }: Serving): 'stop' | 'wake' | 'take' {
  const serves = servedBy(current);
  const isAwake = wantedDepth(current) === 'awake';
  if (isAwake && serves !== null && serves.endpointId !== ref.endpointId) {
    throw new Error(`branch ${ref.branchId} is in use by ${serves.endpointId}`);
  }
  refuseStale(current, ref, generation);
  if (!isAwake) return 'wake';
  return serves !== null && serves.generation < generation ? 'stop' : 'take';
}

export function servingPatch(current: Cluster, { ref, generation, settings, image }: Serving): MergePatch {
  const wanted = postgresqlOf(settings);
  const mine = {
    [endpointAnnotation]: ref.endpointId,
    [generationAnnotation]: String(generation),
    [asleepAnnotation]: null,
    [settingsAnnotation]: namesOfGiven(Object.keys(wanted.parameters ?? {})),
  };
  const postgresql = replacing(current, wanted);
  const imageName = image ?? current.spec.imageName;
  return { ...annotated(wakePatch, mine), spec: { postgresql, imageName } };
}

/** Names of the parameters that Catnap gave a Cluster; all others in it are defaults of the operator's. */
export function givenSettings({ metadata }: Cluster): readonly string[] {
  return (metadata.annotations?.[settingsAnnotation] ?? '').split(',').filter((name) => name !== '');
}

/** In the form of the annotation. */
export const namesOfGiven = (names: Iterable<string>) => [...names].sort().join(',');

/** The time is when somebody last served it: a second nap does not begin the wait for deep sleep anew. */
export function sleepPatch(current: Cluster): MergePatch {
  const since = current.metadata.annotations?.[asleepAnnotation] ?? new Date().toISOString();
  return annotated(napPatch, { [asleepAnnotation]: since });
}

export function annotated(patch: MergePatch, annotations: Readonly<Record<string, string | null>>): MergePatch {
  const { metadata } = patch as { metadata: { annotations: object } };
  return { ...patch, metadata: { annotations: { ...metadata.annotations, ...annotations } } };
}

/** A merge patch keeps the parameters that it does not name: those that are no longer wanted are taken away by name. */
function replacing(current: Cluster, wanted: ReturnType<typeof postgresqlOf>): MergePatch {
  const old = Object.keys(current.spec.postgresql?.parameters ?? {}).map((name) => [name, null]);
  return { ...wanted, parameters: { ...Object.fromEntries(old), ...wanted.parameters } };
}
