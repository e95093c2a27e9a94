/**
 * Read replicas: a Cluster for each, made from a snapshot of its running primary, and a slot in the primary, which
 * keeps the log that the replica has not received yet. An unused slot retains log, so the slot of a replica that is
 * gone is noted on the branch's Cluster, and the branch's server drops it as soon as it runs.
 */

import { asBranchId } from '../../../lib/ids.ts';
import {
  type BranchRef,
  type ComputeRef,
  type ComputeSpec,
  type ReplicaData,
  type ReplicaObservation,
  StaleGenerationError,
} from '../../interface/driver.ts';
import { slotName } from '../../interface/own-logins.ts';
import type { Session } from '../../server/admin-session.ts';
import { dropSlot, makeSlot, observeSlot } from '../../server/replication.ts';
import { quoteLiteral } from '../../server/sql-text.ts';
import type { KubernetesClient } from '../client/client.ts';
import type { Platform } from '../manifests/cluster.ts';
import {
  clusterName,
  followsLabel,
  labelsOfFollowers,
  labelsOfReplica,
  leftSlotsAnnotation,
  replicaLabel,
  slotAnnotation,
} from '../manifests/labels.ts';
import { labelsOfReplicaData, replicaManifest } from '../manifests/replica.ts';
import { readinessOf, wantedDepth } from '../manifests/sleep.ts';
import { snapshotFor } from '../manifests/snapshot.ts';
import { type Cluster, clusters, volumeSnapshots } from '../objects/kinds.ts';
import type { BranchClusters } from './branch-clusters.ts';
import type { ComputeRecords } from './compute-records.ts';
import { type ComputeServers, NotRunningError } from './compute-servers.ts';
import { findReplica } from './find-replica.ts';
import { checkpointMsMax } from './last-words.ts';
import { untilObject } from './patience.ts';
import { removeLabelled } from './removal.ts';
import { servedBy } from './serving.ts';
import { takeSnapshot } from './snapshots.ts';

/** A build takes seconds anyway, and a primary that is slow to answer should not cost it. */
const patient = { statementMs: checkpointMsMax, connectSeconds: 10 };

interface Parts {
  readonly client: KubernetesClient;
  readonly platform: Platform;
  readonly branches: BranchClusters;
  readonly records: ComputeRecords;
  readonly servers: ComputeServers;
}

export class ReplicaClusters {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The Cluster of a replica whose data is complete, and of this branch. */
  async find(ref: ComputeRef): Promise<Cluster | null> {
    const found = await findReplica(this.#parts.client, ref);
    return found?.metadata.annotations?.[slotAnnotation] === undefined ? null : found;
  }

  /** Keeps the data if the replica can continue from it, otherwise copies the primary's. */
  async build(spec: ComputeSpec, anew: boolean): Promise<ReplicaData> {
    const { branches, records, servers } = this.#parts;
    const before = await records.find(spec.endpointId);
    const seen = before?.generation ?? 0;
    if (spec.generation < seen) throw new StaleGenerationError(spec.endpointId, spec.generation, seen);
    const hasData = !anew && (await this.find(spec)) !== null;
    const primary = await branches.find(spec);
    if (primary === null || !isServed(primary)) return hasData ? 'kept' : 'needs_primary';
    const slot = slotName(spec.endpointId);
    const prepare = async (sql: Session): Promise<string | null> => {
      if (hasData && !(await observeSlot(sql, slot)).lost) return null;
      const { projectId, branchId, endpointId, generation, adminSecret } = spec;
      await records.claim({ projectId, branchId, endpointId, generation, adminSecret });
      await this.#discard(spec, before?.branchId, branchId);
      // Left by an earlier replica of this endpoint, and needed again.
      await this.#changeLeftSlots(primary, (names) => names.filter((name) => name !== slot));
      await makeSlot(sql, slot);
      await sql`CHECKPOINT`;
      return this.#copyVolume(spec, primary);
    };
    const snapshot = await servers.enterServed(primary, prepare, patient);
    if (snapshot === null) return 'kept';
    await this.#create(spec, primary, snapshot, slot);
    return 'built';
  }

  /** Null when no primary runs. */
  async observe(ref: ComputeRef): Promise<ReplicaObservation | null> {
    const primary = await this.#parts.branches.find(ref);
    if (primary === null || !isServed(primary)) return null;
    return this.#inPrimary(primary, (sql) => observeSlot(sql, slotName(ref.endpointId)));
  }

  /** With what an attempt to build it has left. Does nothing for a compute that never ran. */
  async remove(ref: ComputeRef): Promise<void> {
    const record = await this.#parts.records.find(ref.endpointId);
    if (record !== null) await this.#discard(ref, record.branchId);
  }

  /** Its data, and its slot in the primary of each branch that it may have followed, but for one that is `needed`. */
  async #discard(ref: ComputeRef, recorded: string | undefined, needed?: string): Promise<void> {
    const { client, branches } = this.#parts;
    const found = await client.find(clusters, clusterName(ref.endpointId));
    const followed = [found?.metadata.labels?.[followsLabel], recorded, ref.branchId];
    await removeLabelled(client, labelsOfReplica(ref));
    for (const branchId of new Set(followed)) {
      if (branchId === undefined || branchId === needed) continue;
      const primary = await branches.find({ ...ref, branchId: asBranchId(branchId) });
      if (primary !== null) await this.#leaveSlots(primary, [ref.endpointId]);
    }
  }

  /** Before the branch gets other data: a copy of the old is no start for the new. */
  async removeFollowers(ref: BranchRef): Promise<void> {
    const { client, branches } = this.#parts;
    const { items } = await client.list(clusters, labelsOfFollowers(ref));
    if (items.length === 0) return;
    const primary = await branches.find(ref);
    const endpoints = items.map(({ metadata }) => metadata.labels?.[replicaLabel] ?? '');
    if (primary !== null) await this.#leaveSlots(primary, endpoints);
    await removeLabelled(client, labelsOfFollowers(ref));
  }

  /** In a server that runs: drops the slots of replicas that have gone while it slept. */
  async dropLeftSlots(primary: Cluster): Promise<void> {
    const left = leftSlots(primary);
    if (left.length === 0) return;
    const drop = async (sql: Session) => {
      for (const slot of left) await dropSlot(sql, slot);
      return true;
    };
    if ((await this.#inPrimary(primary, drop)) !== true) return;
    await this.#changeLeftSlots(primary, (names) => names.filter((name) => !left.includes(name)));
  }

  async #leaveSlots(primary: Cluster, endpointIds: readonly string[]): Promise<void> {
    const slots = endpointIds.map(slotName);
    const noted = await this.#changeLeftSlots(primary, (names) => [...new Set([...names, ...slots])]);
    if (noted !== null && isServed(noted)) await this.dropLeftSlots(noted);
  }

  #changeLeftSlots({ metadata }: Cluster, change: (names: readonly string[]) => readonly string[]) {
    return this.#parts.client.change(clusters, metadata.name, (current) => {
      const names = change(leftSlots(current)).join(',');
      return { metadata: { annotations: { [leftSlotsAnnotation]: names === '' ? null : names } } };
    });
  }

  async #inPrimary<T>(primary: Cluster, work: (sql: Session) => Promise<T>): Promise<T | null> {
    try {
      return await this.#parts.servers.enterServed(primary, work, {});
    } catch (error) {
      if (error instanceof NotRunningError) return null;
      throw error;
    }
  }

  async #copyVolume(spec: ComputeSpec, primary: Cluster): Promise<string> {
    const claim = readinessOf(primary).primary;
    if (claim === null) throw new Error(`the primary of ${spec.endpointId} has no volume`);
    const snapshot = snapshotFor(spec.endpointId, labelsOfReplicaData(spec), claim, this.#parts.platform);
    await takeSnapshot(this.#parts.client, snapshot);
    return snapshot.metadata.name;
  }

  /** Stays awake: its start follows, and a fence would take effect half a minute after the server's first start. */
  async #create(spec: ComputeSpec, primary: Cluster, snapshot: string, slot: string): Promise<void> {
    const { client, platform, servers } = this.#parts;
    const manifest = replicaManifest({ spec, primary: primary.metadata.name, snapshot }, platform);
    await client.create(clusters, manifest);
    const { name } = manifest.metadata;
    const which = { resource: clusters, labels: labelsOfReplica(spec), name };
    const made = await untilObject(client, which, (cluster) => readinessOf(cluster).isReady);
    if (made === null) throw new Error(`the Cluster ${name} was removed while it was made`);
    // The operator has no field for the slot of a replica Cluster. It never writes the file that this goes to.
    const follow = async (sql: Session) => {
      await sql.unsafe(`ALTER SYSTEM SET primary_slot_name = ${quoteLiteral(slot)}`);
      await sql`SELECT pg_reload_conf()`;
    };
    await servers.enterUnserved(made, follow, patient, spec.adminSecret);
    await client.change(clusters, name, () => ({ metadata: { annotations: { [slotAnnotation]: slot } } }));
    await client.remove(volumeSnapshots, snapshot);
  }
}

const isServed = (cluster: Cluster) => servedBy(cluster) !== null && wantedDepth(cluster) === 'awake';

const leftSlots = ({ metadata }: Cluster): readonly string[] =>
  (metadata.annotations?.[leftSlotsAnnotation] ?? '').split(',').filter((name) => name !== '');
