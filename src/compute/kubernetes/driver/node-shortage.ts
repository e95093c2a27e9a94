/**
 * Deep sleep before its time, where nodes are short: a pod that no node has room for, or a size that a node puts off,
 * gets what computes that nap had reserved, those that have napped for longest first.
 */
import type { KubernetesClient } from '../client/client.ts';
import { asleepAnnotation, labelsOfEverything } from '../manifests/labels.ts';
import { bytesIn, coresIn, serverContainer } from '../manifests/sizes.ts';
import { readinessOf, wantedDepth } from '../manifests/sleep.ts';
import { type Cluster, clusters, type Pod, pods } from '../objects/kinds.ts';
import { deepen } from './deep-sleep.ts';

/** Of a node: a pod takes one place, whatever it requests. */
interface Room {
  readonly cores: number;
  readonly bytes: number;
  readonly places: number;
}

interface Nap {
  readonly cluster: Cluster;
  readonly pod: Pod;
}

const none: Room = { cores: 0, bytes: 0, places: 0 };

export class NodeShortage {
  readonly #client: KubernetesClient;
  /**
   * What was freed for a pod, by its uid. It gets no more than it requests: if it still waits after that, naps are not
   * what keeps it waiting.
   */
  #freed: ReadonlyMap<string, Room> = new Map();

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  /** Returns how many computes were put into deep sleep. Usually nothing waits, and it asks for one list of pods. */
  async look(): Promise<number> {
    const { items: all } = await this.#client.list(pods, labelsOfEverything);
    const waiting = all.flatMap((pod) => {
      const wanted = lackingRoom(pod);
      return wanted === null ? [] : [{ pod, wanted, given: this.#freed.get(pod.metadata.uid ?? '') ?? none }];
    });
    const isAnyShort = waiting.some(({ given, wanted }) => !covers(given, wanted));
    let naps = isAnyShort ? await this.#findNaps(all) : [];
    const freed = new Map<string, Room>();
    let count = 0;
    for (const { pod, wanted, given } of waiting) {
      const deepened = await this.#free(naps, pod, { wanted, given });
      naps = naps.filter((nap) => !deepened.includes(nap));
      count += deepened.length;
      freed.set(pod.metadata.uid ?? '', deepened.map((nap) => requestsOf(nap.pod)).reduce(plus, given));
    }
    this.#freed = freed;
    return count;
  }

  /** Returns the naps that became deep sleep. One that is woken at this very moment stays awake. */
  async #free(naps: readonly Nap[], pod: Pod, { wanted, given }: { wanted: Room; given: Room }): Promise<Nap[]> {
    const { nodeName } = pod.spec;
    const deepened: Nap[] = [];
    let room = given;
    for (const nap of byNode(naps)) {
      if (covers(room, wanted)) break;
      if (nodeName !== undefined && nap.pod.spec.nodeName !== nodeName) continue;
      if (!(await deepen(this.#client, nap.cluster, (current) => wantedDepth(current) === 'nap'))) continue;
      deepened.push(nap);
      room = plus(room, requestsOf(nap.pod));
    }
    return deepened;
  }

  /** The longest first. */
  async #findNaps(all: readonly Pod[]): Promise<Nap[]> {
    const { items } = await this.#client.list(clusters, labelsOfEverything);
    const since = ({ cluster }: Nap) => cluster.metadata.annotations?.[asleepAnnotation] ?? '';
    return items
      .flatMap((cluster) => {
        const pod = all.find(({ metadata }) => metadata.name === readinessOf(cluster).primary);
        return pod === undefined || wantedDepth(cluster) !== 'nap' ? [] : [{ cluster, pod }];
      })
      .sort((a, b) => (since(a) < since(b) ? -1 : 1));
  }
}

/** Naps of the node that has most of them come first, so that what is freed is in one place. */
function byNode(naps: readonly Nap[]): readonly Nap[] {
  const counts = new Map<string | undefined, number>();
  for (const { pod } of naps) counts.set(pod.spec.nodeName, (counts.get(pod.spec.nodeName) ?? 0) + 1);
  const countOn = ({ pod }: Nap) => counts.get(pod.spec.nodeName) ?? 0;
  return naps.toSorted((a, b) => countOn(b) - countOn(a));
}

/** Of what the scheduler, or the kubelet, says is missing. Null when nothing is, or something else than room. */
function lackingRoom(pod: Pod): Room | null {
  const lack = pod.status?.conditions?.find(
    ({ type, status, reason }) =>
      (type === 'PodScheduled' && status === 'False' && reason === 'Unschedulable') ||
      (type === 'PodResizePending' && reason === 'Deferred'),
  );
  if (lack === undefined) return null;
  const { message = '' } = lack;
  const whole = requestsOf(pod);
  const wanted = {
    cores: /\bcpu\b/.test(message) ? whole.cores : 0,
    bytes: /\bmemory\b/.test(message) ? whole.bytes : 0,
    places: /too many pods/i.test(message) ? whole.places : 0,
  };
  return covers(none, wanted) ? null : wanted;
}

function requestsOf({ spec }: Pod): Room {
  const requests = spec.containers.find(({ name }) => name === serverContainer)?.resources?.requests;
  return {
    cores: requests === undefined ? 0 : coresIn(requests.cpu),
    bytes: requests === undefined ? 0 : bytesIn(requests.memory),
    places: 1,
  };
}

const covers = (given: Room, wanted: Room) =>
  given.cores >= wanted.cores && given.bytes >= wanted.bytes && given.places >= wanted.places;

const plus = (a: Room, b: Room): Room => ({
  cores: a.cores + b.cores,
  bytes: a.bytes + b.bytes,
  places: a.places + b.places,
});
