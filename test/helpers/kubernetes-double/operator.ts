/**
 * The double's operator, kubelet and storage: makes real what the objects ask for, and writes the states in the order
 * in which a real CloudNativePG wrote them (`test/kubernetes/operator.test.ts` compares with recordings). For one
 * instance. It is quicker than the real one, and has none of its delays: a second fence right after a wake is carried
 * out at once.
 */

import { randomInt } from 'node:crypto';
import type { KubernetesObject } from '../../../src/compute/kubernetes/client/objects.ts';
import { wantedDepth } from '../../../src/compute/kubernetes/manifests/sleep.ts';
import type { Cluster, Pod, Secret } from '../../../src/compute/kubernetes/objects/kinds.ts';
import type { ApiServerDouble } from './api-server.ts';
import { checkKeys, makeAccess, makeClaim, makePod } from './belongings.ts';
import { claimOf, majorOf, now, podReady, type Status, uncounted, withCondition, withReady } from './cluster-status.ts';
import type { StoredObject, StoreEvent } from './object-store.ts';
import { alterSystemOf, fixedParameters } from './operator-parameters.ts';
import { isSnapshotReady, takeSnapshot } from './snapshotter.ts';
import type { Volumes } from './volumes.ts';

const hibernation = 'cnpg.io/hibernation';
/** Of a claim whose data is complete. */
const claimStatus = 'cnpg.io/pvcStatus';
const waiting = 'Waiting for the instances to become active';
/** How soon a server that has died is noticed. */
const lookMs = 50;

export class OperatorDouble {
  readonly #double: ApiServerDouble;
  readonly #volumes: Volumes;
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** The work on each Cluster or snapshot, one piece after the other. */
  readonly #queues = new Map<string, Promise<void>>();
  /** Pids of servers that should run, by Cluster. */
  readonly #servers = new Map<string, number>();
  readonly #configured = new Map<string, string>();
  /** Another one for each double: other tests of the machine have theirs. */
  readonly #network = `127.${randomInt(64, 255)}.${randomInt(256)}`;
  #lastAddress = 0;
  /**
   * As the instance manager does in the first seconds after a wake: it takes the end of its server for a part of the
   * wake, and starts no other one in the same pod.
   */
  overlooksEnds = false;
  /** Uids of the pods in which that has happened. */
  readonly #stalled = new Set<string>();
  /** What went wrong inside the double itself, for the test to fail with. */
  readonly failures: unknown[] = [];

  constructor(double: ApiServerDouble, volumes: Volumes) {
    this.#double = double;
    this.#volumes = volumes;
    double.store.onEvent((event) => this.#notice(event), this.#stop.signal);
    this.#timer = setInterval(() => void this.#lookAfterServers(), lookMs);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#timer);
    await Promise.all(this.#queues.values());
    for (const name of this.#servers.keys()) await this.#volumes.stop(claimOf(name));
    if (this.failures.length > 0) throw new AggregateError(this.failures, 'the double failed');
  }

  /** When nothing is left to do for what has happened so far. */
  async settled(): Promise<void> {
    for (let before = -1; before !== this.#double.store.version; ) {
      before = this.#double.store.version;
      // What has happened is announced behind it.
      await new Promise((resolve) => setImmediate(resolve));
      await Promise.all(this.#queues.values());
    }
  }

  #notice({ plural, object }: StoreEvent): void {
    const { name, labels } = object.metadata;
    if (plural === 'clusters') this.#enqueue(name);
    else if (plural === 'pods') this.#noticePod(labels?.['cnpg.io/cluster'] ?? '');
    else if (plural === 'volumesnapshots') this.#enqueueWork(`snapshot/${name}`, () => this.#snapshot(name));
  }

  /** Replicas of its Cluster find it at another address, as by the name of its Service. */
  #noticePod(name: string): void {
    this.#enqueue(name);
    for (const cluster of this.#store.list('clusters') as unknown as readonly Cluster[]) {
      if (this.#followed(cluster) === name) this.#enqueue(cluster.metadata.name);
    }
  }

  /** The Cluster that a replica streams from; null for one that is no replica. */
  #followed({ spec }: Cluster): string | null {
    if (spec.replica?.enabled !== true) return null;
    const source = spec.externalClusters?.find(({ name }) => name === spec.replica?.source);
    const service = this.#store.find('services', source?.connectionParameters?.host ?? '');
    return service?.metadata.labels?.['cnpg.io/cluster'] ?? null;
  }

  #enqueue(name: string): void {
    if (name !== '') this.#enqueueWork(name, () => this.#reconcile(name));
  }

  #enqueueWork(key: string, work: () => Promise<void>): void {
    const before = this.#queues.get(key) ?? Promise.resolve();
    const next = before.then(async () => {
      if (!this.#stop.signal.aborted) await work();
    });
    this.#queues.set(
      key,
      next.catch((error: unknown) => {
        this.failures.push(error);
        // A test should fail with this now, and not when it has waited in vain.
        this.#double.breakWith(error);
      }),
    );
  }

  /** In place of the kubelet, which is told by its runtime when a container ends. */
  async #lookAfterServers(): Promise<void> {
    for (const [name, pid] of [...this.#servers]) {
      if ((await this.#volumes.find(claimOf(name))) !== pid && this.#servers.get(name) === pid) this.#enqueue(name);
    }
  }

  get #store() {
    return this.#double.store;
  }

  readonly #cluster = (name: string) => this.#store.find('clusters', name) as (StoredObject & Cluster) | undefined;
  readonly #pod = (name: string) => this.#store.find('pods', name) as (StoredObject & Pod) | undefined;

  /** Level-based: does what is missing for what is wanted now. */
  async #reconcile(name: string): Promise<void> {
    const pod = this.#pod(claimOf(name));
    if (pod?.metadata.deletionTimestamp !== undefined) await this.#endPod(name);
    else if (pod === undefined) await this.#stopServer(name);
    const cluster = this.#cluster(name);
    if (cluster === undefined || cluster.metadata.deletionTimestamp !== undefined) return this.#endClaim(name);
    if (!this.#double.isOperatorUp) return;
    if (wantedDepth(cluster) === 'deep') return this.#hibernate(name, cluster);
    this.#setStatus(name, ({ conditions = [], ...rest }) => ({
      ...rest,
      ...(conditions.length > 0 && { conditions: conditions.filter(({ type }) => type !== hibernation) }),
    }));
    if (!(await this.#bootstrap(name, cluster))) return;
    this.#ensurePod(name, cluster);
    await this.#matchServer(name);
  }

  async #bootstrap(name: string, cluster: StoredObject & Cluster): Promise<boolean> {
    const claim = claimOf(name);
    const claimed = this.#store.find('persistentvolumeclaims', claim);
    if (claimed?.metadata.annotations?.[claimStatus] === 'ready') return true;
    const { initdb, recovery } = cluster.spec.bootstrap ?? {};
    const source = recovery?.volumeSnapshots?.storage.name;
    // As recorded: no word of it in the status, and nothing is made.
    if (source !== undefined && !isSnapshotReady(this.#store, source)) return false;
    const { owner = 'app', database = 'app', secret } = initdb ?? recovery ?? {};
    makeAccess(this.#store, cluster, owner);
    const passwords = this.#store.find('secrets', secret?.name ?? `${name}-app`) as (StoredObject & Secret) | undefined;
    if (passwords === undefined) return false;
    makeClaim(this.#store, cluster);
    this.#setStatus(name, (status) => ({ ...status, targetPrimary: claim }));
    this.#store.update('persistentvolumeclaims', claim, (it) => ({ ...it, status: { phase: 'Bound' } }));
    this.#setStatus(name, (status) => withReady({ ...status, phase: 'Setting up primary' }, false));
    const job = `${claim}-${source === undefined ? 'initdb' : 'snapshot-recovery'}-x5c8n`;
    this.#startPod(job, cluster);
    this.#setPod(job, 'Running', true);
    const password = Buffer.from(passwords.data?.password ?? '', 'base64').toString();
    const statements = initdb?.postInitSQL ?? [];
    if (source !== undefined && cluster.spec.replica?.enabled) {
      checkKeys(this.#store, cluster);
      await this.#volumes.recoverAsStandby(claim, source);
    } else if (source === undefined) {
      await this.#volumes.initialise(claim, majorOf(cluster), { database, owner, password, statements });
    } else await this.#volumes.recover(claim, source, { owner, password });
    this.#setPod(job, 'Running', false);
    this.#setPod(job, 'Succeeded', false);
    // It may have been removed meanwhile, and the claim with it.
    if (this.#cluster(name)?.metadata.uid !== cluster.metadata.uid) {
      this.#removePod(job);
      return false;
    }
    this.#store.update('persistentvolumeclaims', claim, (it) => {
      const annotations = { ...it.metadata.annotations, [claimStatus]: 'ready' };
      return { ...it, metadata: { ...it.metadata, annotations } };
    });
    this.#ensurePod(name, cluster);
    await this.#matchServer(name);
    this.#removePod(job);
    return true;
  }

  #ensurePod(name: string, cluster: StoredObject & Cluster): void {
    const claim = claimOf(name);
    if (this.#pod(claim) !== undefined) return;
    const isNew = cluster.status?.currentPrimary === undefined;
    // The operator learns late that the pod of before is gone.
    if (!isNew) this.#setStatus(name, uncounted);
    this.#startPod(claim, cluster, () => {
      this.#setStatus(name, (status) => ({ ...status, instancesStatus: { failed: [claim] } }));
      this.#setStatus(name, (status) => withReady({ ...status, phase: waiting }, false));
    });
    this.#setPod(claim, 'Running', false);
    this.#setStatus(name, (status) => ({ ...status, instancesStatus: { replicating: [claim] } }));
  }

  /** What the instance manager does inside the pod. */
  async #matchServer(name: string): Promise<void> {
    const claim = claimOf(name);
    const [cluster, pod] = [this.#cluster(name), this.#pod(claim)];
    if (cluster === undefined || pod?.status?.podIP === undefined) return;
    if (wantedDepth(cluster) !== 'awake') {
      if (!this.#servers.has(name)) return;
      await this.#stopServer(name);
      // After three failed probes. The primary, the phase and Ready stay as they are.
      this.#setPod(claim, 'Running', false);
      this.#setStatus(name, uncounted);
      return;
    }
    const {
      parameters = {},
      shared_preload_libraries: libraries = [],
      pg_hba: rules = [],
    } = cluster.spec.postgresql ?? {};
    // Where a server listens and logs, and what it archives, is the double's own business.
    const isOwn = ([name]: [string, string]) => !fixedParameters.has(name);
    const own = Object.fromEntries(Object.entries(parameters).filter(isOwn));
    const followed = this.#followed(cluster);
    const follows = followed === null ? null : (this.#pod(claimOf(followed))?.status?.podIP ?? null);
    const canAlter = majorOf(cluster) < 17 ? {} : { allow_alter_system: alterSystemOf(cluster) };
    const settings = { address: pod.status.podIP, parameters: { ...own, ...canAlter }, libraries, rules, follows };
    const isAlive = (await this.#volumes.find(claim)) !== null && this.#servers.has(name);
    if (this.overlooksEnds && !isAlive && this.#servers.delete(name)) this.#stalled.add(pod.metadata.uid);
    if (this.#stalled.has(pod.metadata.uid)) {
      this.#setPod(claim, 'Running', false);
      this.#setStatus(name, uncounted);
      return;
    }
    if (!isAlive) this.#servers.set(name, await this.#volumes.start(claim, majorOf(cluster), settings));
    else if (this.#configured.get(name) !== JSON.stringify(settings)) await this.#volumes.configure(claim, settings);
    this.#configured.set(name, JSON.stringify(settings));
    this.#setStatus(name, (status) => ({ ...status, currentPrimary: claim }));
    this.#setPod(claim, 'Running', true);
    this.#setStatus(name, (status) => ({ ...status, readyInstances: 1, instancesStatus: { healthy: [claim] } }));
    this.#setStatus(name, (status) => withReady({ ...status, phase: 'Cluster in healthy state' }, true));
  }

  async #hibernate(name: string, cluster: Cluster): Promise<void> {
    const claim = claimOf(name);
    const pod = this.#pod(claim);
    const says = (reason: string, status: 'True' | 'False') => (current: Status) =>
      withCondition(current, { type: hibernation, status, reason, message: '', lastTransitionTime: now() });
    if (pod === undefined) {
      if (cluster.status?.currentPrimary !== undefined) this.#setStatus(name, says('Hibernated', 'True'));
      return;
    }
    this.#setStatus(name, says('DeletingPods', 'False'));
    this.#store.remove('pods', claim, { foreground: false, uid: undefined });
    this.#setStatus(name, (status) => says('WaitingPodsDeletion', 'False')(uncounted(status)));
  }

  async #stopServer(name: string): Promise<void> {
    if (!this.#servers.delete(name)) return;
    await this.#volumes.stop(claimOf(name));
  }

  async #endPod(name: string): Promise<void> {
    await this.#stopServer(name);
    this.#setPod(claimOf(name), 'Succeeded', false);
    this.#releasePod(claimOf(name));
  }

  #removePod(name: string): void {
    this.#store.remove('pods', name, { foreground: false, uid: undefined });
    this.#releasePod(name);
  }

  #releasePod(name: string): void {
    this.#store.update('pods', name, (pod) => ({ ...pod, metadata: { ...pod.metadata, finalizers: [] } }));
  }

  /** Of a Cluster that is gone: the claim waits for the last pod that uses it. */
  async #endClaim(name: string): Promise<void> {
    const claim = claimOf(name);
    await this.#stopServer(name);
    if (this.#pod(claim) !== undefined) return;
    this.#store.update('persistentvolumeclaims', claim, (it) => ({
      ...it,
      metadata: { ...it.metadata, finalizers: [] },
    }));
    await this.#volumes.removeVolume(claim);
  }

  /** Until it has an address of its own, on which its server has the usual port. */
  #startPod(name: string, cluster: StoredObject & Cluster, scheduled?: () => void): void {
    makePod(this.#store, cluster, name);
    this.#setPod(name, 'Pending', false);
    scheduled?.();
    const number = ++this.#lastAddress;
    const podIP = `${this.#network}.${(number % 250) + 1}`;
    const state = { running: { startedAt: now() } };
    const containerStatuses = [{ name: 'postgres', resources: cluster.spec.resources, state }];
    const status = { phase: 'Pending', podIP, containerStatuses, conditions: [podReady(false)] };
    this.#store.update('pods', name, (pod) => ({ ...pod, status }) as KubernetesObject);
  }

  async #snapshot(name: string): Promise<void> {
    if (!(await takeSnapshot(this.#store, this.#volumes, name))) return;
    // A recovery may be waiting for it.
    for (const { metadata } of this.#store.list('clusters')) this.#enqueue(metadata.name);
  }

  #setPod(name: string, phase: string, isReady: boolean): void {
    this.#store.update('pods', name, (pod) => {
      const status = { ...(pod as StoredObject).status, phase, conditions: [podReady(isReady)] };
      return { ...pod, status } as KubernetesObject;
    });
  }

  #setStatus(name: string, change: (status: Status) => Status): void {
    this.#store.update('clusters', name, (it) => {
      const status = change((it as unknown as Cluster).status ?? {});
      return Object.keys(status).length === 0 ? it : ({ ...it, status } as KubernetesObject);
    });
  }
}
