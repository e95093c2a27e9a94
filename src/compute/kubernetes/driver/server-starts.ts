/**
 * The way from a wish to serve a branch to the change of its Cluster that wakes it. A client waits for it, so requests
 * that do not need each other's answers are on their way together, and nothing is read twice.
 */
import type { BranchRef, ComputeSpec } from '../../interface/driver.ts';
import type { Platform } from '../manifests/cluster.ts';
import { labelsOfBranch } from '../manifests/labels.ts';
import { settingsFor } from '../manifests/settings.ts';
import type { Cluster } from '../objects/kinds.ts';
import type { BranchClusters, SeenCluster } from './branch-clusters.ts';
import type { ComputeRecords } from './compute-records.ts';
import { type ComputeServers, type FoundServer, serverIn } from './compute-servers.ts';
import { majorOf } from './observation.ts';
import type { ReplicaClusters } from './replica-clusters.ts';
import { isServedBy, type Serving, servedBy } from './serving.ts';

interface Parts {
  readonly platform: Platform;
  readonly branches: BranchClusters;
  readonly records: ComputeRecords;
  readonly servers: ComputeServers;
  readonly replicas: ReplicaClusters;
}

interface Woken {
  /** Its server may not answer yet. */
  readonly found: FoundServer;
  /** Whether this generation serves the branch still. */
  readonly isMine: () => Promise<boolean>;
}

/** Of all that belong to the project, those that this compute served before it moved here are still to be left. */
interface FirstLook {
  readonly mine: SeenCluster | null;
  readonly others: readonly Cluster[];
  /** What the operator was told of Catnap's login; null for a replica, which has the password of its primary. */
  readonly adminSecret: string | null;
}

export class ServerStarts {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async wake(spec: ComputeSpec): Promise<Woken> {
    const { branches, records, servers, replicas } = this.#parts;
    const { projectId, branchId, endpointId, generation, adminSecret } = spec;
    const [look] = await Promise.all([
      this.#look(spec),
      records.claim({ projectId, branchId, endpointId, generation, adminSecret }),
    ]);
    const { mine, others } = look;
    await this.#leave(others, spec);
    if (mine === null) throw new Error(`${spec.readOnly ? `replica ${endpointId}` : `branch ${branchId}`} has no data`);
    const serving = this.#servingOf(spec, mine.cluster);
    const isNewSecret = look.adminSecret !== null && look.adminSecret !== adminSecret;
    if (isNewSecret) await branches.giveAdminSecret(mine.cluster.metadata.name, adminSecret);
    const find = spec.readOnly ? () => replicas.find(spec) : undefined;
    const { cluster, pod } = await branches.wake(serving, find, mine);
    const isMine = async () => {
      const now = await servers.findCluster(spec);
      return now !== null && servedBy(now)?.generation === generation;
    };
    return { found: serverIn(cluster, pod), isMine };
  }

  /** Only reads: until the claim is made, this may be an old generation that is to change nothing. */
  async #look(spec: ComputeSpec): Promise<FirstLook> {
    const { branches, replicas } = this.#parts;
    if (spec.readOnly) {
      const replica = await replicas.find(spec);
      return { mine: replica && (await branches.look(replica)), others: [], adminSecret: null };
    }
    const ofProject = await branches.listOf(spec);
    const others = ofProject.filter((cluster) => isServedBy(cluster, spec) && !isOfBranch(cluster, spec));
    const found = ofProject.find((cluster) => isOfBranch(cluster, spec));
    if (found === undefined) return { mine: null, others, adminSecret: null };
    const [mine, [adminSecret = '']] = await Promise.all([
      branches.look(found),
      branches.readAdminSecrets(found.metadata.name),
    ]);
    return { mine, others, adminSecret };
  }

  /** A compute that has moved serves one branch at a time. */
  async #leave(others: readonly Cluster[], spec: ComputeSpec): Promise<void> {
    for (const cluster of others) {
      await this.#parts.branches.sleepThis(cluster, spec, spec.generation);
      await this.#parts.branches.untilStill(cluster);
    }
  }

  #servingOf(spec: ComputeSpec, cluster: Cluster): Serving {
    const { branchId, generation, pgVersion } = spec;
    const major = majorOf(cluster);
    if (major !== pgVersion) throw new Error(`branch ${branchId} is of Postgres ${major}, not ${pgVersion}`);
    const image = this.#parts.platform.images[major];
    return { ref: spec, generation, settings: settingsFor(spec), ...(image !== undefined && { image }) };
  }
}

export const isOfBranch = ({ metadata }: Cluster, ref: BranchRef) =>
  Object.entries(labelsOfBranch(ref)).every(([name, value]) => metadata.labels?.[name] === value);
