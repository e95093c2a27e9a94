/**
 * The Clusters of branches: made, copied, woken, put to sleep and removed. Every call can be repeated, and each change
 * of a Cluster is decided on the Cluster as it is when it is written.
 *
 * Which compute serves a Cluster, and in which generation, is written on the Cluster in the same patch that wakes it,
 * so that no other compute can take it over in between.
 */
import { delay } from '../../../lib/clock.ts';
import { newSecret } from '../../../lib/ids.ts';
import { type BranchRef, type ComputeRef, StaleGenerationError } from '../../interface/driver.ts';
import type { KubernetesClient, MergePatch } from '../client/client.ts';
import type { Resource } from '../client/objects.ts';
import { type ClusterWish, clusterManifest, type Platform } from '../manifests/cluster.ts';
import {
  adminSecretName,
  clusterName,
  endpointAnnotation,
  generationAnnotation,
  labelsOfBranch,
} from '../manifests/labels.ts';
import { adminSecretManifest } from '../manifests/secret.ts';
import { postgresqlOf } from '../manifests/settings.ts';
import { deepSleepPatch, napPatch, readinessOf, wakePatch, wantedDepth } from '../manifests/sleep.ts';
import { snapshotManifest } from '../manifests/snapshot.ts';
import { type Cluster, clusters, pods, secrets, services, volumeClaims, volumeSnapshots } from '../objects/kinds.ts';

export interface Serving {
  readonly ref: ComputeRef;
  readonly generation: number;
  readonly settings: Readonly<Record<string, string>>;
}

/** A new volume on slow storage, an image that has to be fetched first; after that the operation tries again. */
const readyMsMax = 600_000;
const lookMs = 100;

export class BranchClusters {
  readonly #client: KubernetesClient;
  readonly #platform: Platform;

  constructor(client: KubernetesClient, platform: Platform) {
    this.#client = client;
    this.#platform = platform;
  }

  /** The Cluster that holds a branch's data; null when it has none. */
  async find(ref: Pick<BranchRef, 'projectId' | 'branchId'>): Promise<Cluster | null> {
    const { items } = await this.#client.list(clusters, labelsOfBranch(ref));
    return items.find(({ metadata }) => metadata.deletionTimestamp === undefined) ?? null;
  }

  /** Asleep, unless a compute has begun to serve it. */
  async createEmpty(ref: BranchRef, pgVersion: number): Promise<void> {
    await this.#create({ ...ref, pgVersion, settings: {}, source: { kind: 'empty' } }, newSecret());
  }

  /** Of the source as it is now; it goes on serving, or sleeping. */
  async copy(ref: BranchRef, pgVersion: number, source: Cluster): Promise<void> {
    const volumeClaim = readinessOf(source).primary;
    if (volumeClaim === null) throw new Error(`branch ${ref.branchId} cannot be made: its source has never been ready`);
    const snapshot = snapshotManifest(ref, volumeClaim, this.#platform);
    const { name } = snapshot.metadata;
    // A Cluster that waits for a snapshot reports no error, so the snapshot is waited for before there is one.
    if ((await this.find(ref)) === null) {
      await this.#client.create(volumeSnapshots, snapshot);
      await this.#untilReadyToUse(name);
    }
    const secret = await this.readAdminSecret(source.metadata.name);
    await this.#create({ ...ref, pgVersion, settings: {}, source: { kind: 'snapshot', name } }, secret);
    await this.#client.remove(volumeSnapshots, name);
  }

  /**
   * Returns when the change is written, not when the server answers. Fails when another compute serves the branch, or a
   * newer generation of this one.
   */
  async wake({ ref, generation, settings }: Serving): Promise<Cluster> {
    const found = await this.find(ref);
    const patch = (current: Cluster): MergePatch => {
      const serves = servedBy(current);
      if (serves !== null && serves.endpointId !== ref.endpointId && wantedDepth(current) === 'awake') {
        throw new Error(`branch ${ref.branchId} is in use by ${serves.endpointId}`);
      }
      refuseStale(current, ref, generation);
      const mine = { [endpointAnnotation]: ref.endpointId, [generationAnnotation]: String(generation) };
      return { ...annotated(wakePatch, mine), spec: { postgresql: replacing(current, postgresqlOf(settings)) } };
    };
    const woken = found && (await this.#client.change(clusters, found.metadata.name, patch));
    if (woken === null) throw new Error(`branch ${ref.branchId} has no data`);
    return woken;
  }

  /** False when this compute does not serve the branch, whose Cluster is then left alone. */
  async sleep(ref: ComputeRef, generation: number, depth: 'nap' | 'deep'): Promise<boolean> {
    const found = await this.find(ref);
    let isMine = false;
    const patch = (current: Cluster): MergePatch | null => {
      refuseStale(current, ref, generation);
      isMine = servedBy(current)?.endpointId === ref.endpointId;
      if (!isMine || wantedDepth(current) === 'deep') return null;
      return depth === 'deep' ? deepSleepPatch : napPatch;
    };
    if (found !== null) await this.#client.change(clusters, found.metadata.name, patch);
    return isMine;
  }

  /** Returns when nothing that carries the labels is left, which takes as long as the server's shutdown. */
  async remove(labels: Readonly<Record<string, string>>): Promise<void> {
    const made: readonly Resource[] = [clusters, volumeSnapshots, secrets];
    for (const resource of made) {
      for (const { metadata } of (await this.#client.list(resource, labels)).items) {
        // A Cluster goes after all that it owns, so that a repeated call finds what is still on its way.
        await this.#client.remove(resource, metadata.name, { foreground: resource === clusters });
      }
    }
    await this.#until('removal', async () => {
      for (const resource of [...made, pods, volumeClaims, services]) {
        if ((await this.#client.list(resource, labels)).items.length > 0) return false;
      }
      return true;
    });
  }

  /** Of Catnap's login in this Cluster, as the operator was told it. */
  async readAdminSecret(cluster: string): Promise<string> {
    const secret = await this.#client.find(secrets, adminSecretName(cluster));
    const password = secret?.data?.password;
    if (password === undefined) throw new Error(`the Secret ${adminSecretName(cluster)} has no password`);
    return Buffer.from(password, 'base64').toString('utf8');
  }

  async #create(wish: ClusterWish, secret: string): Promise<void> {
    await this.#client.create(secrets, adminSecretManifest(wish, secret, this.#platform));
    await this.#client.create(clusters, clusterManifest(wish, this.#platform));
    const name = clusterName(wish.branchId);
    await this.#until(`ready: ${name}`, async () => {
      const made = await this.#client.find(clusters, name);
      if (made === null) throw new Error(`the Cluster ${name} was removed while it was made`);
      return readinessOf(made).isReady || wantedDepth(made) !== 'awake';
    });
    // A compute that has begun to serve it meanwhile keeps it awake.
    await this.#client.change(clusters, name, (made) => (servedBy(made) === null ? napPatch : null));
  }

  async #untilReadyToUse(name: string): Promise<void> {
    await this.#until(`ready to use: ${name}`, async () => {
      const { status } = (await this.#client.find(volumeSnapshots, name)) ?? {};
      if (status?.error === undefined) return status?.readyToUse === true;
      // The next attempt makes a new one.
      await this.#client.remove(volumeSnapshots, name);
      throw new Error(`the volume cannot be copied: ${status.error.message}`);
    });
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const giveUpAt = performance.now() + readyMsMax;
    while (!(await holds())) {
      if (performance.now() > giveUpAt) throw new Error(`Kubernetes was waited for in vain (${what})`);
      await delay(lookMs);
    }
  }
}

/** Which compute was the last to serve it, whether it sleeps now or not; null for a Cluster that none has served. */
export function servedBy({ metadata }: Cluster): { readonly endpointId: string; readonly generation: number } | null {
  const endpointId = metadata.annotations?.[endpointAnnotation];
  if (endpointId === undefined) return null;
  return { endpointId, generation: Number(metadata.annotations?.[generationAnnotation] ?? 0) };
}

function refuseStale(current: Cluster, { endpointId }: ComputeRef, generation: number): void {
  const serves = servedBy(current);
  if (serves?.endpointId !== endpointId || generation >= serves.generation) return;
  throw new StaleGenerationError(endpointId, generation, serves.generation);
}

function annotated(patch: MergePatch, annotations: Readonly<Record<string, string>>): MergePatch {
  const { metadata } = patch as { metadata: { annotations: object } };
  return { ...patch, metadata: { annotations: { ...metadata.annotations, ...annotations } } };
}

/** A merge patch keeps the parameters that it does not name: those that are no longer wanted are taken away by name. */
function replacing(current: Cluster, wanted: ReturnType<typeof postgresqlOf>): MergePatch {
  const old = Object.keys(current.spec.postgresql?.parameters ?? {}).map((name) => [name, null]);
  return { ...wanted, parameters: { ...Object.fromEntries(old), ...wanted.parameters } };
}
