/** Everything that some compute serves, in two requests; for samples, from a look that is up to a second old. */
import type { KubernetesClient } from '../client/client.ts';
import { labelsOfEverything } from '../manifests/labels.ts';
import { wantedDepth } from '../manifests/sleep.ts';
import { pods } from '../objects/kinds.ts';
import type { BranchClusters } from './branch-clusters.ts';
import { type FoundServer, serverIn } from './compute-servers.ts';
import { servedBy } from './serving.ts';

/** How old a listing may be that samples are taken from. */
const seenMs = 1_000;

export class AwakeServers {
  readonly #client: KubernetesClient;
  readonly #branches: BranchClusters;
  #lastSeen: { readonly at: number; readonly awake: Promise<FoundServer[]> } | null = null;

  constructor(client: KubernetesClient, branches: BranchClusters) {
    this.#client = client;
    this.#branches = branches;
  }

  /** After a change by this driver, which is to be seen at once. */
  forget(): void {
    this.#lastSeen = null;
  }

  /** For samples, which are asked for twice a second. */
  listOfLate(): Promise<FoundServer[]> {
    const isOld = this.#lastSeen === null || performance.now() - this.#lastSeen.at > seenMs;
    if (this.#lastSeen === null || isOld) this.#lastSeen = { at: performance.now(), awake: this.list() };
    return this.#lastSeen.awake;
  }

  async list(): Promise<FoundServer[]> {
    const [clusters, { items }] = await Promise.all([
      this.#branches.listAll(),
      this.#client.list(pods, labelsOfEverything),
    ]);
    const served = clusters.filter((cluster) => servedBy(cluster) !== null && wantedDepth(cluster) === 'awake');
    return served.map((cluster) =>
      serverIn(cluster, items.find(({ metadata }) => metadata.name === cluster.status?.currentPrimary) ?? null),
    );
  }
}
