/**
 * Sizes of a compute's pod. They are given through the pod's `resize` subresource, which the kubelet carries out
 * without a restart; the operator leaves it alone, and builds the next pod from `startResources` again.
 */
import type { ComputeLimits } from '../../../lib/model.ts';
import type { MergePatch } from '../client/client.ts';
import type { ContainerResources, ResourceAmounts } from '../objects/kinds.ts';

const mib = 1024 ** 2;

/** The server's, in every pod of a Cluster. */
export const serverContainer = 'postgres';
/** Ran once, long ago. The scheduler still counts the larger request of the two. */
const initContainer = 'bootstrap-controller';

/**
 * The smallest size, except that the start itself is not held to it: a quarter of a core doubles the time of a start.
 * Less is requested than allowed, here and in every size: a pod's class of service is fixed, and one in which the two
 * are equal would have to keep them equal.
 */
export const startResources: ContainerResources = {
  requests: { cpu: '100m', memory: '256Mi' },
  limits: { cpu: '1', memory: '1Gi' },
};

/** What a compute reserves of its size on its node. The rest is shared, as computes rarely peak together. */
const reserved = { cpu: 0.25, memory: 0.5 };
const leastReserved = { millicores: 100, memoryBytes: 256 * mib };

/** Enough for the instance manager, which stays when the server naps. */
const napRequests: ResourceAmounts = { cpu: '10m', memory: '64Mi' };

export function resourcesOf({ cpus, memoryBytes }: Pick<ComputeLimits, 'cpus' | 'memoryBytes'>): ContainerResources {
  const millicores = Math.max(1, Math.round(cpus * 1_000));
  const requestedCores = Math.max(leastReserved.millicores, Math.round(millicores * reserved.cpu));
  const requestedBytes = Math.max(leastReserved.memoryBytes, memoryBytes * reserved.memory);
  return {
    requests: {
      cpu: cores(Math.min(millicores, requestedCores)),
      memory: mebibytes(Math.min(memoryBytes, requestedBytes)),
    },
    limits: { cpu: cores(millicores), memory: mebibytes(memoryBytes) },
  };
}

/** For `pods/<name>/resize`. Both containers, because the scheduler goes by the larger request. */
export function resizePatch(resources: ContainerResources): MergePatch {
  return {
    spec: {
      containers: [{ name: serverContainer, resources }],
      initContainers: [{ name: initContainer, resources }],
    },
  };
}

/**
 * Of a compute that naps. Its limits stay, since lowering them can stay undone for ever and the way back would cost
 * time, except that the next start has as much of the processor as the first one had.
 */
export function napResources({ limits }: ContainerResources): ContainerResources {
  const isSmall = coresIn(limits.cpu) < coresIn(startResources.limits.cpu);
  return { requests: napRequests, limits: { ...limits, ...(isSmall && { cpu: startResources.limits.cpu }) } };
}

const cores = (millicores: number) => `${millicores}m`;
const mebibytes = (bytes: number) => `${Math.max(1, Math.floor(bytes / mib))}Mi`;

/** Amounts as the API server writes them, which may be another form than the one they were given in. */
export function coresIn(amount: string | number): number {
  const text = String(amount);
  return text.endsWith('m') ? Number(text.slice(0, -1)) / 1_000 : Number(text);
}

const units: Readonly<Record<string, number>> = {
  '': 1,
  m: 0.001,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 1024,
  Mi: mib,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
};

export function bytesIn(amount: string | number): number {
  const [, digits, unit = ''] = /^([\d.]+)([a-zA-Z]*)$/.exec(String(amount)) ?? [];
  const factor = units[unit];
  if (digits === undefined || factor === undefined) throw new Error(`${amount} is no amount of memory`);
  return Number(digits) * factor;
}
