/**
 * Gives a pod another size while its server runs. The API server takes a size at once and the kubelet carries it out
 * later or never: what is in force is what the pod's status says.
 */
import { delay } from '../../../lib/clock.ts';
import type { ComputeLimits } from '../../../lib/model.ts';
import type { ResizeOutcome } from '../../interface/driver.ts';
import { isBeyondNode } from '../client/api-error.ts';
import type { KubernetesClient } from '../client/client.ts';
import { bytesIn, coresIn, napResources, resizePatch, resourcesOf, serverContainer } from '../manifests/sizes.ts';
import { type ContainerResources, type Pod, pods } from '../objects/kinds.ts';

/** A kubelet that can do it needs a tenth of a second. */
const waitMsMax = 2_000;
const lookMs = 50;
/** By then the client that a start was for has its first answers. */
const sizeAfterMs = 1_000;

/**
 * `postponed` when the node has not enough room now, or ever, and when more memory is in use than the new size has: the
 * old size holds, and asking again later may succeed. Fails when there is no such pod.
 */
export async function resizePod(
  client: KubernetesClient,
  name: string,
  resources: ContainerResources,
  waitMs = waitMsMax,
): Promise<ResizeOutcome> {
  const giveUpAt = performance.now() + waitMs;
  let pod = await client.patch(pods, name, resizePatch(resources), 'resize').catch((error: unknown) => {
    if (isBeyondNode(error)) return 'beyond node' as const;
    throw error;
  });
  if (pod === 'beyond node') return 'postponed';
  for (;;) {
    if (pod === null) throw new Error(`the pod ${name} is not running`);
    if (isInForce(pod, resources)) return 'applied';
    // The kubelet tries a deferred one again by itself; nobody need wait for that.
    const isDeferred = pod.status?.conditions?.some(({ type }) => type === 'PodResizePending') ?? false;
    if (isDeferred || performance.now() > giveUpAt) return 'postponed';
    await delay(lookMs);
    pod = await client.find(pods, name);
  }
}

/** A pod that has the size already is left alone: reconcilers ask for it again and again. */
export async function sizeThis(client: KubernetesClient, pod: Pod, limits: ComputeLimits): Promise<ResizeOutcome> {
  const wanted = resourcesOf(limits);
  return isInForce(pod, wanted) ? 'applied' : resizePod(client, pod.metadata.name, wanted);
}

/**
 * After a start, which a small size would slow down, as would the change itself those who wait for it. Nobody waits for
 * this: a size that is not given, or that there is no room for, is asked for again by the reconciler that compares
 * sizes with samples.
 */
export async function sizeSoon(client: KubernetesClient, find: () => Promise<Pod | null>, limits: ComputeLimits) {
  await delay(sizeAfterMs);
  const pod = await find().catch(() => null);
  if (pod !== null) await sizeThis(client, pod, limits).catch(() => undefined);
}

/** Of a compute that naps. Nobody waits for it, and one that fails costs no more than room on its node. */
export async function lowerRequests(client: KubernetesClient, { metadata, spec }: Pod): Promise<void> {
  const resources = spec.containers.find(({ name }) => name === serverContainer)?.resources;
  if (resources === undefined) return;
  await resizePod(client, metadata.name, napResources(resources), 0).catch(() => undefined);
}

/** Amounts are compared as numbers: a server writes `1` for `1000m`. */
function isInForce({ status }: Pod, { requests, limits }: ContainerResources): boolean {
  const found = status?.containerStatuses?.find(({ name }) => name === serverContainer)?.resources;
  if (found === undefined) return false;
  const parts = [
    [found.requests, requests],
    [found.limits, limits],
  ] as const;
  return parts.every(
    ([is, wanted]) => coresIn(is.cpu) === coresIn(wanted.cpu) && bytesIn(is.memory) === bytesIn(wanted.memory),
  );
}
