/**
 * The Kubernetes driver: a branch is a CloudNativePG Cluster, and a compute is what wakes it and puts it to sleep. All
 * that must outlive this process is in the objects themselves. Reads go to the API server, which knows the newest
 * state; a cache that lags behind a write of one's own would call a compute awake that was just put to sleep.
 */
import type { BranchHistory, ComputeLimits, ReplicationSlot, ServerCatalog } from '../../../lib/model.ts';
import type { ChangesAfter, UsersTable } from '../../../lib/users-sync.ts';
import { notSupported } from '../../interface/abilities.ts';
import {
  type BranchCopy,
  type BranchRef,
  type BranchReplacement,
  type BranchSpec,
  type CatalogChange,
  type ComputeDriver,
  type ComputeObservation,
  type ComputeRef,
  type ComputeSample,
  type ComputeSpec,
  type ConfiguredCatalog,
  type DetachSpec,
  NoSuchMomentError,
  type ReplicaData,
  type ReplicaObservation,
  type ResizeOutcome,
  type SettledServer,
  StaleGenerationError,
  type TenantRef,
  type WorkObservation,
} from '../../interface/driver.ts';
import type { ServerMeasures } from '../../interface/measures.ts';
import { adminLogin, type EnterAs, type Session, withSession } from '../../server/admin-session.ts';
import type { Ways } from '../../server/blockers.ts';
import { applyCatalogChange, readCatalog } from '../../server/configure.ts';
import { detachSubscriptions, readSlots } from '../../server/logical-replication.ts';
import { readMeasures } from '../../server/measures.ts';
import { dropUsers, syncUsers } from '../../server/users-sync.ts';
import { endWriters, readSize, readWork } from '../../server/work.ts';
import type { KubernetesClient } from '../client/client.ts';
import type { Platform } from '../manifests/cluster.ts';
import { labelsOfBranch, labelsOfProject } from '../manifests/labels.ts';
import { settingsFor } from '../manifests/settings.ts';
import { wantedDepth } from '../manifests/sleep.ts';
import type { Cluster } from '../objects/kinds.ts';
import { adviceOn } from './advice.ts';
import { AwakeServers } from './awake-servers.ts';
import { BranchClusters } from './branch-clusters.ts';
import { BranchData } from './branch-data.ts';
import { ComputeRecords } from './compute-records.ts';
import { ComputeServers, type FoundServer, NotRunningError, serverIn } from './compute-servers.ts';
import { isReplica, isReplicaOf } from './find-replica.ts';
import { inabilities } from './inabilities.ts';
import { checkpointMsMax, settleServer, writeOut } from './last-words.ts';
import { absent, observation } from './observation.ts';
import { podOf } from './pod-address.ts';
import { lowerRequests, sizeSoon, sizeThis } from './pod-sizes.ts';
import { ReplicaClusters } from './replica-clusters.ts';
import { Samples } from './samples.ts';
import { isOfBranch, ServerStarts } from './server-starts.ts';
import { isServedBy, servedBy } from './serving.ts';
import { reloadSettings } from './settings-reload.ts';

/** A server that naps answers within a fraction of this; one whose pod has to come first is left to `observe`. */
const startWaitMs = 2_000;
/** An observation of a server that starts takes this long at most: its callers ask again and again. */
const observeWaitMs = 250;

const emptyHistory: BranchHistory = { from: null, until: null, gaps: [], baseCount: 0, baseBytes: 0, logBytes: 0 };

export interface KubernetesParts {
  readonly client: KubernetesClient;
  readonly platform: Platform;
  /** Asks a Postgres of the same major that is at hand. */
  readonly checkSettings: ComputeDriver['checkSettings'];
}

export class KubernetesDriver implements ComputeDriver {
  readonly cannot = inabilities;
  readonly checkSettings: ComputeDriver['checkSettings'];
  readonly listExtensions: ComputeDriver['listExtensions'];
  readonly readLog: ComputeDriver['readLog'];
  readonly #client: KubernetesClient;
  readonly #branches: BranchClusters;
  readonly #records: ComputeRecords;
  readonly #servers: ComputeServers;
  readonly #data: BranchData;
  readonly #replicas: ReplicaClusters;
  readonly #samples: Samples;
  readonly #awake: AwakeServers;
  readonly #starts: ServerStarts;

  constructor({ client, platform, checkSettings }: KubernetesParts) {
    const advice = adviceOn(platform.images, checkSettings);
    this.checkSettings = advice.checkSettings;
    this.listExtensions = advice.listExtensions;
    this.readLog = advice.readLog;
    this.#client = client;
    this.#branches = new BranchClusters(client, platform);
    this.#records = new ComputeRecords(client);
    this.#servers = new ComputeServers(client, this.#branches, this.#records);
    const parts = { client, platform, branches: this.#branches, records: this.#records, servers: this.#servers };
    this.#replicas = new ReplicaClusters(parts);
    this.#data = new BranchData(this.#branches, this.#servers, this.#replicas);
    this.#samples = new Samples(this.#servers);
    this.#awake = new AwakeServers(client, this.#branches);
    this.#starts = new ServerStarts({ ...parts, replicas: this.#replicas });
  }

  async createBranch(spec: BranchSpec): Promise<BranchCopy> {
    if (spec.source.kind === 'history') throw new NoSuchMomentError(inabilities.history);
    return this.#data.create(spec);
  }

  async emptyBranch(): Promise<void> {
    throw notSupported(inabilities.empty_copies);
  }

  /** With no subscription at work meanwhile: a Cluster that no compute serves has no workers for them. */
  detachBranch(spec: DetachSpec): Promise<void> {
    return this.#branches.privately(spec, (awake) => this.#servers.enterUnserved(awake, detachSubscriptions));
  }

  removeBranch(ref: BranchRef): Promise<void> {
    return this.#branches.remove(labelsOfBranch(ref));
  }

  replaceBranch(ref: BranchRef, by: BranchReplacement): Promise<void> {
    return this.#data.replace(ref, by);
  }

  async keepHistory(ref: BranchRef): Promise<BranchHistory | null> {
    return (await this.#branches.find(ref)) === null ? null : emptyHistory;
  }

  buildReplica(spec: ComputeSpec, anew = false): Promise<ReplicaData> {
    return this.#replicas.build(spec, anew);
  }

  observeReplica(ref: ComputeRef): Promise<ReplicaObservation | null> {
    return this.#replicas.observe(ref);
  }

  async start(spec: ComputeSpec): Promise<ComputeObservation | null> {
    if (spec.frozen) throw notSupported(inabilities.frozen);
    const { found, isMine } = await this.#starts.wake(spec);
    const began = await this.#beganAt(spec, found, spec.adminSecret, startWaitMs);
    // A newer generation may have taken over meanwhile, and answered.
    const isAnswerMine = began !== null && (await isMine());
    const findPod = async () => ((await isMine()) ? podOf(this.#client, found.cluster) : null);
    void sizeSoon(this.#client, findPod, spec.limits).then(() => this.#awake.forget());
    this.#awake.forget();
    return isAnswerMine ? observation(spec, found, began) : null;
  }

  /** When the server answers, it also drops the slots of replicas that were removed while it slept. */
  async #beganAt(ref: ComputeRef, found: FoundServer, adminSecret: string, waitMs: number): Promise<number | null> {
    const began = await this.#servers.beganAt(ref, found, adminSecret, waitMs);
    if (began !== null) await this.#replicas.dropLeftSlots(found.cluster);
    return began;
  }

  /** Clients that wait are told by the start itself. */
  async expectClients(): Promise<void> {}

  async observe(ref: ComputeRef): Promise<ComputeObservation> {
    const [found, record] = await Promise.all([this.#servers.find(ref), this.#records.find(ref.endpointId)]);
    if (found === null || record === null) return absent(ref);
    return observation(ref, found, await this.#beganAt(ref, found, record.adminSecret, observeWaitMs));
  }

  async reload(spec: ComputeSpec): Promise<readonly string[]> {
    const found = await this.#running(spec, spec.generation);
    return reloadSettings({ client: this.#client, servers: this.#servers }, spec, found, settingsFor(spec), true);
  }

  async resize(ref: ComputeRef, generation: number, limits: ComputeLimits): Promise<ResizeOutcome> {
    const found = await this.#running(ref, generation);
    if (found.pod === null) throw new NotRunningError(ref.endpointId);
    const outcome = await sizeThis(this.#client, found.pod, limits);
    this.#awake.forget();
    const parts = { client: this.#client, servers: this.#servers };
    await reloadSettings(parts, ref, found, limits.settings, false);
    return outcome;
  }

  /** Fails unless this very generation serves the branch. */
  async #running(ref: ComputeRef, generation: number): Promise<FoundServer> {
    const seen = (await this.#records.find(ref.endpointId))?.generation ?? 0;
    if (generation < seen) throw new StaleGenerationError(ref.endpointId, generation, seen);
    const found = await this.#servers.find(ref);
    if (found?.generation !== generation) throw new NotRunningError(ref.endpointId);
    return found;
  }

  async sample(refs: readonly ComputeRef[]): Promise<ComputeSample[]> {
    if (refs.length === 0) return [];
    const awake = await this.#awake.listOfLate();
    const taken = refs.map(async (ref) => {
      const found = awake.find(({ cluster }) => isServedBy(cluster, ref) && holds(cluster, ref));
      return found === undefined ? null : this.#samples.take(ref, found).catch(() => null);
    });
    return (await Promise.all(taken)).filter((sample) => sample !== null);
  }

  observeWork(ref: ComputeRef): Promise<WorkObservation> {
    return this.#servers.ifRunning(ref, readWork).then((seen) => seen ?? { work: null, lastWorkAt: null });
  }

  observeSlots(ref: ComputeRef): Promise<readonly ReplicationSlot[] | null> {
    return this.#servers.ifRunning(ref, readSlots);
  }

  measure(ref: ComputeRef): Promise<ServerMeasures | null> {
    return this.#servers.ifRunning(ref, readMeasures);
  }

  observeSize(ref: ComputeRef): Promise<number | null> {
    return this.#servers.ifRunning(ref, readSize);
  }

  async endWriters(ref: ComputeRef): Promise<number> {
    return (await this.#servers.ifRunning(ref, endWriters)) ?? 0;
  }

  async observeRoom(): Promise<null> {
    return null;
  }

  async settle(ref: ComputeRef): Promise<SettledServer | null> {
    const settled = await this.#servers.ifRunning(ref, async (sql, server) =>
      server.isReplica ? null : settleServer(sql),
    );
    return settled && { branchId: ref.branchId, ...settled };
  }

  async suspend(ref: ComputeRef, generation: number): Promise<ServerCatalog | null> {
    await this.#records.raise(ref, generation);
    const served = await this.#servedBy(ref);
    for (const cluster of served) await this.#stop(ref, cluster, generation);
    // A replica may have been built, and its start never have come.
    const built = served.length > 0 ? null : await this.#replicas.find(ref);
    if (built !== null) await this.#branches.stopThis(built);
    return null;
  }

  /** Those that the compute was the last to serve, awake or asleep. */
  async #servedBy(ref: ComputeRef): Promise<readonly Cluster[]> {
    const ofProject = await this.#branches.listOf(ref);
    return ofProject.filter((cluster) => servedBy(cluster)?.endpointId === ref.endpointId);
  }

  async #stop(ref: ComputeRef, cluster: Cluster, generation: number): Promise<void> {
    this.#samples.forget(ref);
    const pod = await podOf(this.#client, cluster);
    if (wantedDepth(cluster) === 'awake') {
      const options = { statementMs: checkpointMsMax, connectSeconds: 2 };
      await this.#servers.enterFound(ref, serverIn(cluster, pod), writeOut, options).catch(() => undefined);
    }
    await this.#branches.sleepThis(cluster, ref, generation);
    await this.#branches.untilStill(cluster);
    this.#awake.forget();
    if (pod !== null) await lowerRequests(this.#client, pod);
  }

  async removeCompute(ref: ComputeRef): Promise<void> {
    const served = (await this.#servedBy(ref)).filter((cluster) => !isReplica(cluster));
    for (const cluster of served) await this.#stop(ref, cluster, servedBy(cluster)?.generation ?? 0);
    if (served.length === 0) await this.#replicas.remove(ref);
    this.#samples.forget(ref);
    await this.#records.remove(ref.endpointId);
  }

  removeProject(ref: TenantRef): Promise<void> {
    return this.#branches.remove(labelsOfProject(ref));
  }

  readCatalog(ref: ComputeRef): Promise<ServerCatalog> {
    return this.#servers.enterPrimary(ref, readCatalog);
  }

  configure(ref: ComputeRef, change: CatalogChange): Promise<ConfiguredCatalog> {
    return this.#servers.enterPrimary(ref, (sql, { address, adminSecret }) => {
      const enterAs: EnterAs = (login, work) => withSession(address, login, work);
      const asAdmin: Ways['asAdmin'] = (work) => enterAs(adminLogin(adminSecret), work);
      // A pod has no files but its own.
      return applyCatalogChange(sql, change, { ways: { enterAs, asAdmin }, hasOwnUid: true });
    });
  }

  syncUsers(ref: ComputeRef, table: UsersTable, changesAfter: ChangesAfter): Promise<number | null> {
    return this.#servers.ifRunning(ref, (_, server) => syncUsers(server, table, changesAfter));
  }

  async dropUsers(ref: ComputeRef, database: string): Promise<boolean> {
    const drop = async (_: Session, server: Parameters<typeof dropUsers>[0]) => {
      await dropUsers(server, database);
      return true;
    };
    return (await this.#servers.ifRunning(ref, drop)) ?? false;
  }

  async list(): Promise<ComputeObservation[]> {
    const [awake, records] = await Promise.all([this.#awake.list(), this.#records.list()]);
    const seen = awake.map(async (found) => {
      const record = records.find(({ endpointId }) => isServedBy(found.cluster, { endpointId }));
      if (record === undefined) return null;
      const ref = { ...record, tenantUid: null };
      const began = await this.#servers.beganAt(ref, found, record.adminSecret, 0).catch(() => null);
      return observation(record, found, began);
    });
    return (await Promise.all(seen)).filter((one) => one !== null);
  }
}

const holds = (cluster: Cluster, ref: ComputeRef) => isOfBranch(cluster, ref) || isReplicaOf(cluster, ref);
