/** Waiting for what the operator, the storage or a server does in its own time. */
import { delay } from '../../../lib/clock.ts';
import type { KubernetesClient } from '../client/client.ts';
import type { KubernetesObject, Resource } from '../client/objects.ts';

/** A new volume on slow storage, an image that has to be fetched first; after that the operation tries again. */
const waitMsMax = 600_000;
const firstPauseMs = 10;
/** A wait of minutes should not be hundreds of requests a second. */
const pauseMsMax = 250;
const growth = 1.3;

/** Asks until the answer is not null, at first often and then less so. */
export async function untilFound<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const giveUpAt = performance.now() + waitMsMax;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * growth)) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > giveUpAt) throw new Error(`Kubernetes was waited for in vain (${what})`);
    await delay(pauseMs);
  }
}

export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  await untilFound(what, async () => ((await holds()) ? true : null));
}

/** Watches one object until it is as wanted, and returns it so; null when it is removed, or was never there. */
export async function untilObject<T extends KubernetesObject>(
  client: KubernetesClient,
  { resource, labels, name }: { resource: Resource<T>; labels: Readonly<Record<string, string>>; name: string },
  isAsWanted: (object: T) => boolean,
): Promise<T | null> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), waitMsMax);
  const isIt = ({ metadata }: T) => metadata.name === name;
  try {
    for await (const event of client.watch(resource, labels, stop.signal)) {
      const objects = event.type === 'listed' ? event.objects : [event.object];
      const found = objects.find(isIt);
      const isGone = event.type === 'listed' ? found === undefined : event.type === 'removed' && found !== undefined;
      if (isGone) return null;
      if (found !== undefined && isAsWanted(found)) return found;
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
  throw new Error(`Kubernetes was waited for in vain (${resource.kind} ${name})`);
}
