/**
 * The Clusters of branches: made, copied, woken, put to sleep and removed. Every call can be repeated, and each change
 * of a Cluster is decided on the Cluster as it is when it is written.
 */
import { newSecret } from '../../../lib/ids.ts';
import type { BranchReceipt, BranchRef, ComputeRef, TenantRef } from '../../interface/driver.ts';
import { isVerdict } from '../client/api-error.ts';
import type { KubernetesClient, MergePatch } from '../client/client.ts';
import { type ClusterWish, clusterManifest, type DataSource, type Platform } from '../manifests/cluster.ts';
import {
  adminSecretName,
  branchLabel,
  clusterName,
  endpointAnnotation,
  generationAnnotation,
  labelsOfBranch,
  labelsOfEverything,
  labelsOfProject,
  receiptAnnotation,
} from '../manifests/labels.ts';
import { adminSecretManifest } from '../manifests/secret.ts';
import { unservedSettings } from '../manifests/settings.ts';
import { deepSleepPatch, readinessOf, wakePatch, wantedDepth } from '../manifests/sleep.ts';
import { snapshotManifest } from '../manifests/snapshot.ts';
import { type Cluster, clusters, type Pod, secrets, volumeSnapshots } from '../objects/kinds.ts';
import { until, untilFound, untilObject } from './patience.ts';
import { isStill, podOf } from './pod-address.ts';
import { removeLabelled } from './removal.ts';
import { annotated, nextStep, refuseStale, type Serving, servedBy, servingPatch, sleepPatch } from './serving.ts';
import { takeSnapshot } from './snapshots.ts';

/** Looks at a new server before anybody else can, and says how its data was made. */
export type FirstLook = (made: Cluster) => Promise<BranchReceipt>;

/** The pod is that of its primary; null when there is none. */
export interface SeenCluster {
  readonly cluster: Cluster;
  readonly pod: Pod | null;
}

export class BranchClusters {
  readonly #client: KubernetesClient;
  readonly #platform: Platform;

  constructor(client: KubernetesClient, platform: Platform) {
    this.#client = client;
    this.#platform = platform;
  }

  /** The Cluster that holds a branch's data; null when it has none. */
  async find(ref: Pick<BranchRef, 'projectId' | 'branchId'>): Promise<Cluster | null> {
    return (await this.#list(labelsOfBranch(ref)))[0] ?? null;
  }

  listOf(ref: Pick<TenantRef, 'projectId'>): Promise<readonly Cluster[]> {
    return this.#list(labelsOfProject(ref));
  }

  listAll(): Promise<readonly Cluster[]> {
    return this.#list(labelsOfEverything);
  }

  /** Asleep, unless a compute has begun to serve it. */
  async createEmpty(ref: BranchRef, pgVersion: number, look?: FirstLook): Promise<Cluster> {
    return this.#create(
      { ...ref, pgVersion, settings: unservedSettings, source: { kind: 'empty' } },
      newSecret(),
      look,
    );
  }

  /** Of the source as it is now; it goes on serving, or sleeping. `during` is what happens while the copy is taken. */
  async copy(
    ref: BranchRef,
    pgVersion: number,
    source: Cluster,
    look?: FirstLook,
    during = (take: () => Promise<void>) => take(),
  ): Promise<Cluster> {
    const volumeClaim = readinessOf(source).primary;
    if (volumeClaim === null) throw new Error(`branch ${ref.branchId} cannot be made: its source has never been ready`);
    const snapshot = snapshotManifest(ref, volumeClaim, this.#platform);
    const { name } = snapshot.metadata;
    // A Cluster that waits for a snapshot reports no error, so the snapshot is waited for before there is one.
    if ((await this.find(ref)) === null) {
      await during(() => takeSnapshot(this.#client, snapshot));
    }
    const secret = await this.readAdminSecret(source.metadata.name);
    const from: DataSource = { kind: 'snapshot', name };
    const made = await this.#create({ ...ref, pgVersion, settings: unservedSettings, source: from }, secret, look);
    await this.#client.remove(volumeSnapshots, name);
    return made;
  }

  async look(cluster: Cluster): Promise<SeenCluster> {
    return { cluster, pod: await podOf(this.#client, cluster) };
  }

  /**
   * Returns when the change is written, not when the server answers: a server of an older generation has ended by then.
   * Fails when another compute serves the branch, or a newer generation of this one. `find` is for a replica, whose
   * Cluster is not the branch's. What the caller has just seen is not read again, unless it has changed since.
   */
  async wake(serving: Serving, find = () => this.find(serving.ref), lastSeen?: SeenCluster): Promise<SeenCluster> {
    const { ref } = serving;
    let known = lastSeen;
    return untilFound(`end of the server before: ${ref.endpointId}`, async () => {
      const found = known?.cluster ?? (await find());
      if (found === null) throw new Error(`branch ${ref.branchId} has no data`);
      const step = nextStep(found, serving);
      const { pod } = known ?? (await this.look(found));
      known = undefined;
      if (step === 'wake' && !(await isStill(pod))) return null;
      const patch = step === 'stop' ? sleepPatch(found) : servingPatch(found, serving);
      const written = await this.#changeThis(found, patch);
      return step === 'stop' || written === null ? null : { cluster: written, pod };
    });
  }

  /** False when this compute does not serve the branch, whose Cluster is then left alone. */
  async sleep(ref: ComputeRef, generation: number, depth: 'nap' | 'deep'): Promise<boolean> {
    const found = await this.find(ref);
    return found !== null && this.sleepThis(found, ref, generation, depth);
  }

  async sleepThis(found: Cluster, ref: ComputeRef, generation: number, depth: 'nap' | 'deep' = 'nap') {
    let isMine = false;
    const patch = (current: Cluster): MergePatch | null => {
      refuseStale(current, ref, generation);
      isMine = servedBy(current)?.endpointId === ref.endpointId;
      if (!isMine || wantedDepth(current) === 'deep') return null;
      return depth === 'deep' ? deepSleepPatch : sleepPatch(current);
    };
    await this.#client.change(clusters, found.metadata.name, patch);
    return isMine;
  }

  /** Whoever serves it. Returns when its server has ended. */
  async stopThis(found: Cluster): Promise<void> {
    const { name } = found.metadata;
    const patch = (current: Cluster) => (wantedDepth(current) === 'awake' ? sleepPatch(current) : null);
    await this.#client.change(clusters, name, patch);
    await this.untilStill(found);
  }

  untilStill(cluster: Cluster): Promise<void> {
    const isEnded = async () => isStill(await podOf(this.#client, cluster));
    return until(`end of the server: ${cluster.metadata.name}`, isEnded);
  }

  /** Lets its server run for work of Catnap's own, which no compute serves meanwhile, and puts it to sleep again. */
  async privately(ref: BranchRef, work: (awake: Cluster) => Promise<void>): Promise<void> {
    const found = await this.find(ref);
    if (found === null) throw new Error(`branch ${ref.branchId} has no data`);
    const { name } = found.metadata;
    const awake = await this.#client.change(clusters, name, (current) => {
      // Without its last compute, which would seem to serve it.
      const nobody = { [endpointAnnotation]: null, [generationAnnotation]: null };
      if (wantedDepth(current) !== 'awake') return annotated(wakePatch, nobody);
      const serves = servedBy(current);
      if (serves !== null) throw new Error(`branch ${ref.branchId} is in use by ${serves.endpointId}`);
      return null;
    });
    if (awake === null) throw new Error(`branch ${ref.branchId} has no data`);
    await work(awake);
    await this.stopThis(awake);
  }

  /** Gives the data of one branch to another, which has none. The operator passes labels on to all that it made. */
  async rename(found: Cluster, to: BranchRef): Promise<void> {
    const labels = { [branchLabel]: to.branchId };
    const { name } = found.metadata;
    await this.#client.change(secrets, adminSecretName(name), () => ({ metadata: { labels } }));
    await this.#client.change(clusters, name, () => ({
      metadata: { labels },
      spec: { inheritedMetadata: { labels } },
    }));
  }

  /** Returns when nothing that carries the labels is left, which takes as long as the server's shutdown. */
  remove(labels: Readonly<Record<string, string>>): Promise<void> {
    return removeLabelled(this.#client, labels);
  }

  /** Of Catnap's login in this Cluster, as the operator was told it. */
  async readAdminSecret(cluster: string): Promise<string> {
    const [password] = await this.readAdminSecrets(cluster);
    if (password === undefined) throw new Error(`the Secret ${adminSecretName(cluster)} has no password`);
    return password;
  }

  /** That, and the one before it, which the server may still have. */
  async readAdminSecrets(cluster: string): Promise<readonly string[]> {
    const { data = {} } = (await this.#client.find(secrets, adminSecretName(cluster))) ?? {};
    return ['password', 'previous'].flatMap((name) => {
      const value = data[name];
      return value === undefined ? [] : [Buffer.from(value, 'base64').toString('utf8')];
    });
  }

  /** The operator gives the login this password whenever an instance manager starts, so the Secret needs it, too. */
  async giveAdminSecret(cluster: string, password: string): Promise<void> {
    await this.#client.change(secrets, adminSecretName(cluster), ({ data = {} }) => {
      const before = data.password;
      const wanted = Buffer.from(password).toString('base64');
      return before === wanted ? null : { data: { password: wanted, previous: before ?? null } };
    });
  }

  async #list(labels: Readonly<Record<string, string>>): Promise<readonly Cluster[]> {
    const { items } = await this.#client.list(clusters, labels);
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  async #create(wish: ClusterWish, secret: string, look?: FirstLook): Promise<Cluster> {
    const name = (await this.find(wish))?.metadata.name ?? (await this.#freeName(wish));
    await this.#client.create(secrets, adminSecretManifest(wish, secret, this.#platform, name));
    await this.#client.create(clusters, clusterManifest(wish, this.#platform, name));
    const isMade = (made: Cluster) => readinessOf(made).isReady || wantedDepth(made) !== 'awake';
    const which = { resource: clusters, labels: labelsOfBranch(wish), name };
    const ready = await untilObject(this.#client, which, isMade);
    if (ready === null) throw new Error(`the Cluster ${name} was removed while it was made`);
    if (receiptOf(ready) !== null) return ready;
    const receipt = look === undefined ? {} : { [receiptAnnotation]: JSON.stringify(await look(ready)) };
    const made = await this.#client.change(clusters, name, (current) => {
      // A compute that has begun to serve it meanwhile keeps it awake.
      const patch = servedBy(current) === null ? sleepPatch(current) : { metadata: { annotations: {} } };
      return annotated(patch, receipt);
    });
    if (made === null) throw new Error(`the Cluster ${name} was removed while it was made`);
    return made;
  }

  /** After an exchange of data a Cluster may have the name of a branch whose data it no longer holds. */
  async #freeName({ branchId }: BranchRef): Promise<string> {
    for (let count = 1; ; count++) {
      const name = count === 1 ? clusterName(branchId) : clusterName(`${branchId}-${count}`);
      const found = await this.#client.find(clusters, name);
      if (found === null || found.metadata.labels?.[branchLabel] === branchId) return name;
    }
  }

  /** Null when it is no longer what was found. */
  async #changeThis({ metadata: { name, resourceVersion } }: Cluster, patch: MergePatch): Promise<Cluster | null> {
    const metadata = { ...(patch.metadata as object | undefined), resourceVersion };
    try {
      return await this.#client.patch(clusters, name, { ...patch, metadata });
    } catch (error) {
      if (isVerdict(error, 'conflict')) return null;
      throw error;
    }
  }
}

/** Null until its data is complete. */
export function receiptOf({ metadata }: Cluster): BranchReceipt | null {
  const text = metadata.annotations?.[receiptAnnotation];
  return text === undefined ? null : (JSON.parse(text) as BranchReceipt);
}
