/**
 * The two depths of sleep, as annotations of a Cluster. A nap is a fence: the instance manager stops the server and its
 * pod stays, so that a wake is a matter of tenths of a second. Deep sleep is hibernation: the pod goes, too.
 *
 * What the status says of either comes late or not at all: a fenced Cluster still has a primary, is healthy and Ready.
 * These annotations are Catnap's own word, and come first.
 */
import type { MergePatch } from '../client/client.ts';
import type { Cluster } from '../objects/kinds.ts';

const fence = 'cnpg.io/fencedInstances';
const hibernation = 'cnpg.io/hibernation';
const everyInstance = '["*"]';

const annotate = (annotations: Readonly<Record<string, string | null>>): MergePatch => ({ metadata: { annotations } });

export const napPatch = annotate({ [fence]: everyInstance });
/** Without the fence: the pod that comes with the next wake is to start its server at once. */
export const deepSleepPatch = annotate({ [fence]: null, [hibernation]: 'on' });
export const wakePatch = annotate({ [fence]: null, [hibernation]: 'off' });

export type WantedDepth = 'awake' | 'nap' | 'deep';

export function wantedDepth({ metadata }: Pick<Cluster, 'metadata'>): WantedDepth {
  if (metadata.annotations?.[hibernation] === 'on') return 'deep';
  return (metadata.annotations?.[fence] ?? '[]') === '[]' ? 'awake' : 'nap';
}

/**
 * Where a Cluster is on its way. `settled` asleep means that no server runs: for deep sleep the operator says so, for a
 * nap it does not, and only the server's silence tells.
 */
export interface Readiness {
  readonly wanted: WantedDepth;
  /** The pod of the primary; null while there is none, or none that is known. */
  readonly primary: string | null;
  /** The operator counts every instance as ready. Lags behind the server by a probe. */
  readonly isReady: boolean;
  /** Deep asleep, with no pod left. */
  readonly isHibernated: boolean;
}

export function readinessOf({ metadata, spec, status = {} }: Cluster): Readiness {
  const condition = (type: string) => status.conditions?.find((one) => one.type === type);
  const hibernated = condition(hibernation);
  const wanted = wantedDepth({ metadata });
  return {
    wanted,
    primary: status.currentPrimary === undefined || status.currentPrimary === '' ? null : status.currentPrimary,
    // Condition and count together: the condition stays True while a Cluster hibernates, and for a moment after.
    isReady:
      wanted === 'awake' &&
      hibernated === undefined &&
      condition('Ready')?.status === 'True' &&
      status.readyInstances === spec.instances,
    isHibernated: hibernated?.status === 'True',
  };
}
