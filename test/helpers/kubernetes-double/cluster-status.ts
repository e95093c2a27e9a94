/** States as the operator writes them. */
import type { Cluster } from '../../../src/compute/kubernetes/objects/kinds.ts';

export type Status = NonNullable<Cluster['status']>;
type Condition = NonNullable<Status['conditions']>[number];

/** The real one is 5432, which another server of the machine may have on all of its addresses. */
export const doublePort = 25_432;
/** The first instance's, and that of its pod. */
export const claimOf = (name: string) => `${name}-1`;
export const now = () => `${new Date().toISOString().slice(0, 19)}Z`;
export const majorOf = ({ spec }: Cluster) => Number(/:(\d+)/.exec(spec.imageName ?? '')?.[1]);
export const podReady = (isReady: boolean) => ({ type: 'Ready', status: isReady ? 'True' : 'False' });

export function uncounted({ readyInstances: _, instancesStatus: __, ...status }: Status): Status {
  return status;
}

export function withReady(status: Status, isReady: boolean): Status {
  const condition = { type: 'Ready', message: '', lastTransitionTime: now() };
  return isReady
    ? withCondition(status, { ...condition, status: 'True', reason: 'ClusterIsReady' })
    : withCondition(status, { ...condition, status: 'False', reason: 'ClusterIsNotReady' });
}

/** Keeps the time of a condition that stays as it is, so that nothing is written. */
export function withCondition(status: Status, condition: Condition): Status {
  const { conditions = [] } = status;
  const before = conditions.find(({ type }) => type === condition.type);
  if (before?.status === condition.status && before.reason === condition.reason) return status;
  return { ...status, conditions: [...conditions.filter(({ type }) => type !== condition.type), condition] };
}
