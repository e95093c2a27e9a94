/**
 * The `resize` subresource of a pod, with its checks, and the kubelet that carries it out: the spec changes at once,
 * the resources in force follow, and no container restarts. Nothing but resources is taken from the body.
 */
import { bytesIn, coresIn } from '../../../src/compute/kubernetes/manifests/sizes.ts';
import type { ContainerResources, Pod } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { pods } from '../../../src/compute/kubernetes/objects/kinds.ts';
import { ApiFailure, failure, invalid } from './api-failure.ts';
import { mergePatched } from './merge-patch.ts';
import type { ObjectStore, StoredObject } from './object-store.ts';

/** Of the double's only node. */
const nodeCores = 2;

interface Body {
  readonly spec?: {
    readonly containers?: readonly { readonly name: string; readonly resources: ContainerResources }[];
    readonly initContainers?: readonly { readonly name: string; readonly resources: ContainerResources }[];
  };
}

/** How the kubelet takes a size: at once, when the node has room again, or never, for memory that is in use. */
export type KubeletMood = 'obliging' | 'no room' | 'memory in use';

export function resizePod(
  store: ObjectStore,
  found: StoredObject,
  body: unknown,
  mood: KubeletMood,
): StoredObject | undefined {
  const { name } = found.metadata;
  const { containers = [], initContainers = [] } = (body as Body).spec ?? {};
  const given = new Map([...initContainers, ...containers].map((one) => [one.name, one.resources]));
  const { spec } = found as unknown as Pod;
  const resized = (list: Pod['spec']['containers'] | undefined) =>
    list?.map((one) => ({ ...one, resources: shortened(mergePatched(one.resources, given.get(one.name) ?? {})) }));
  const next = { ...spec, containers: resized(spec.containers), initContainers: resized(spec.initContainers) };
  for (const [index, one] of (next.containers ?? []).entries()) {
    check(name, index, one.resources as ContainerResources);
  }
  store.update(pods.plural, name, (pod) => ({ ...pod, spec: next }));
  return store.update(pods.plural, name, (pod) => {
    const { status = {} } = pod as unknown as Pod;
    const others = (status.conditions ?? []).filter(({ type }) => !type.startsWith('PodResize'));
    if (mood !== 'obliging') {
      const pending = { type: 'PodResizePending', status: 'True', reason: 'Deferred' };
      const condition = mood === 'no room' ? pending : { type: 'PodResizeInProgress', status: 'True' };
      return { ...pod, status: { ...status, conditions: [condition, ...others] } };
    }
    const containerStatuses = (status.containerStatuses ?? []).map((one) => {
      const resources = next.containers?.find((container) => container.name === one.name)?.resources;
      return { ...one, resources };
    });
    return { ...pod, status: { ...status, conditions: others, containerStatuses } };
  });
}

/** As the server writes them: `1` for `1000m`, `1Gi` for `1024Mi`. */
function shortened(resources: unknown): ContainerResources {
  const { requests, limits } = resources as ContainerResources;
  const short = ({ cpu, memory }: ContainerResources['limits']) => {
    const gibibytes = bytesIn(memory) / 1024 ** 3;
    return {
      cpu: Number.isInteger(coresIn(cpu)) ? String(coresIn(cpu)) : cpu,
      memory: Number.isInteger(gibibytes) ? `${gibibytes}Gi` : memory,
    };
  };
  return { requests: short(requests), limits: short(limits) };
}

function check(pod: string, index: number, { requests, limits }: ContainerResources): void {
  for (const [amount, read] of [
    ['memory', bytesIn],
    ['cpu', coresIn],
  ] as const) {
    const [asked, most] = [requests[amount], limits[amount]];
    if (read(asked) <= read(most)) continue;
    const field = `spec.containers[${index}].resources.requests`;
    const message = `Invalid value: "${asked}": must be less than or equal to ${amount} limit of ${most}`;
    throw new ApiFailure(invalid(pods, pod, field, message));
  }
  const requested = coresIn(requests.cpu);
  if (requested <= nodeCores) return;
  const amounts = `cpu, requested: ${requested * 1_000}, allocatable: ${nodeCores * 1_000}`;
  const message = `pods "${pod}" is forbidden: node didn't have enough allocatable resources: ${amounts}`;
  throw new ApiFailure(failure(403, 'Forbidden', message, [{ reason: 'NodeCapacity' }]));
}
