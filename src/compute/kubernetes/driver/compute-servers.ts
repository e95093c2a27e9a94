/** The servers of computes: where they are, and sessions of Catnap's own in them. */
import { randomBytes } from 'node:crypto';
import { delay } from '../../../lib/clock.ts';
import { asEndpointId } from '../../../lib/ids.ts';
import { buildVerifier } from '../../../lib/scram-verifier.ts';
import type { ComputeRef } from '../../interface/driver.ts';
import { adminRole, adminScramIterations } from '../../interface/own-logins.ts';
import {
  adminLogin,
  isFull,
  isNotReady,
  isRefused,
  type Session,
  type SessionOptions,
  withSession,
} from '../../server/admin-session.ts';
import { quoteLiteral } from '../../server/sql-text.ts';
import type { KubernetesClient } from '../client/client.ts';
import type { Cluster, Pod } from '../objects/kinds.ts';
import type { BranchClusters } from './branch-clusters.ts';
import type { ComputeRecords } from './compute-records.ts';
import { findReplica, isReplica } from './find-replica.ts';
import { untilFound } from './patience.ts';
import { addressOf, type PodAddress, podOf } from './pod-address.ts';
import { isServedBy, servedBy } from './serving.ts';

/** A Cluster that is meant to be awake for a compute. Its server may not answer yet. */
export interface FoundServer {
  readonly cluster: Cluster;
  readonly pod: Pod | null;
  readonly address: PodAddress | null;
  readonly generation: number;
}

export interface RunningServer {
  readonly address: PodAddress;
  readonly adminSecret: string;
  readonly isReplica: boolean;
}

export class NotRunningError extends Error {
  constructor(endpointId: string, cause?: unknown) {
    super(`compute ${endpointId} is not running`, { cause });
    this.name = 'NotRunningError';
  }
}

/** Between two attempts to enter a server that is about to answer. */
const dialMs = 10;
const entering: SessionOptions = { connectSeconds: 2 };

export class ComputeServers {
  readonly #client: KubernetesClient;
  readonly #branches: BranchClusters;
  readonly #records: ComputeRecords;

  constructor(client: KubernetesClient, branches: BranchClusters, records: ComputeRecords) {
    this.#client = client;
    this.#branches = branches;
    this.#records = records;
  }

  /** Null unless this compute serves its branch, or is a replica of it that is awake. */
  async find(ref: ComputeRef): Promise<FoundServer | null> {
    const cluster = await this.findCluster(ref);
    return cluster && serverIn(cluster, await podOf(this.#client, cluster));
  }

  /** The same without a look at its pod. */
  async findCluster(ref: ComputeRef): Promise<Cluster | null> {
    const ofBranch = await this.#branches.find(ref);
    const isPrimary = ofBranch !== null && isServedBy(ofBranch, ref);
    const cluster = isPrimary ? ofBranch : await findReplica(this.#client, ref);
    return cluster !== null && isServedBy(cluster, ref) ? cluster : null;
  }

  /** As `enter`, and fails for a replica, which holds what its primary does. */
  enterPrimary<T>(ref: ComputeRef, work: (sql: Session, server: RunningServer) => Promise<T>): Promise<T> {
    return this.enter(ref, (sql, server) => {
      if (server.isReplica)
        throw new Error(`compute ${ref.endpointId} is read-only: its primary is configured instead`);
      return work(sql, server);
    });
  }

  /** Fails with NotRunningError when no server answers, or it goes away during the work. */
  async enter<T>(ref: ComputeRef, work: (sql: Session, server: RunningServer) => Promise<T>, options = entering) {
    const [found, record] = await Promise.all([this.find(ref), this.#records.find(ref.endpointId)]);
    if (found === null || record === null) throw new NotRunningError(ref.endpointId);
    return this.enterFound(ref, found, work, options, record.adminSecret);
  }

  async enterFound<T>(
    ref: Pick<ComputeRef, 'endpointId'>,
    { cluster, address }: FoundServer,
    work: (sql: Session, server: RunningServer) => Promise<T>,
    options = entering,
    adminSecret?: string,
  ): Promise<T> {
    const secret = adminSecret ?? (await this.#records.find(ref.endpointId))?.adminSecret;
    if (address === null || secret === undefined) throw new NotRunningError(ref.endpointId);
    const server = { address, adminSecret: secret, isReplica: isReplica(cluster) };
    const attempt = () => withSession(address, adminLogin(secret), (sql) => work(sql, server), options);
    try {
      return await attempt().catch(async (error: unknown) => {
        if (!isRefused(error)) throw error;
        await this.#replaceSecret(cluster, address, secret);
        return attempt();
      });
    } catch (error) {
      if (isRefused(error)) throw new Error(`the server of ${ref.endpointId} refuses Catnap's login`, { cause: error });
      throw isNotReady(error) ? new NotRunningError(ref.endpointId, error) : error;
    }
  }

  /** Null when none runs; one that has no room for another session runs, so that fails. */
  async ifRunning<T>(ref: ComputeRef, work: (sql: Session, server: RunningServer) => Promise<T>): Promise<T | null> {
    try {
      return await this.enter(ref, work);
    } catch (error) {
      if (error instanceof NotRunningError && !isFull(error.cause)) return null;
      throw error;
    }
  }

  /** When the server began to run, in milliseconds; null if it does not answer within the time. */
  async beganAt(ref: ComputeRef, found: FoundServer, adminSecret: string, waitMs: number): Promise<number | null> {
    const giveUpAt = performance.now() + waitMs;
    for (;;) {
      try {
        return await this.enterFound(ref, found, readBegin, entering, adminSecret);
      } catch (error) {
        if (!(error instanceof NotRunningError)) throw error;
        if (performance.now() > giveUpAt || found.address === null) return null;
        await delay(dialMs);
      }
    }
  }

  /** In the server of a Cluster that some compute serves. */
  async enterServed<T>(cluster: Cluster, work: (sql: Session) => Promise<T>, options: SessionOptions): Promise<T> {
    const endpointId = servedBy(cluster)?.endpointId;
    if (endpointId === undefined) return this.enterUnserved(cluster, work, options);
    const found = serverIn(cluster, await podOf(this.#client, cluster));
    return this.enterFound({ endpointId: asEndpointId(endpointId) }, found, work, { ...entering, ...options });
  }

  /** In a server that no compute serves, with the password that its Cluster was made with. Waits until it answers. */
  async enterUnserved<T>(
    cluster: Cluster,
    work: (sql: Session) => Promise<T>,
    options = entering,
    adminSecret?: string,
  ): Promise<T> {
    const { name } = cluster.metadata;
    const secret = adminSecret ?? (await this.#branches.readAdminSecret(name));
    const done = await untilFound(`answer: ${name}`, async () => {
      const pod = await podOf(this.#client, cluster);
      const address = pod && addressOf(pod);
      if (address === null) return null;
      try {
        return { value: await withSession(address, adminLogin(secret), work, options) };
      } catch (error) {
        if (isNotReady(error)) return null;
        throw error;
      }
    });
    return done.value;
  }

  /**
   * A new server has the password that its Cluster was made with, and gets that of its project here. It is sent as a
   * verifier: the password itself never appears in a statement. The Secret has the new one already.
   */
  async #replaceSecret(cluster: Cluster, address: PodAddress, adminSecret: string): Promise<void> {
    const verifier = buildVerifier(adminSecret, randomBytes(16), adminScramIterations);
    const replace = `ALTER ROLE ${adminRole} PASSWORD ${quoteLiteral(verifier)}`;
    for (const secret of await this.#branches.readAdminSecrets(cluster.metadata.name)) {
      try {
        await withSession(address, adminLogin(secret), (sql) => sql.unsafe(replace), entering);
        return;
      } catch (error) {
        if (!isRefused(error)) throw error;
      }
    }
    // Another worker may have been quicker, and the next login tells.
  }
}

export function serverIn(cluster: Cluster, pod: Pod | null): FoundServer {
  const generation = servedBy(cluster)?.generation ?? 0;
  return { cluster, pod, address: pod && addressOf(pod), generation };
}

/** Postgres does not tell its pid, which in a pod would be the same each time; when it began is another every time. */
async function readBegin(sql: Session): Promise<number> {
  const [found] = await sql<{ at: number }[]>`
    SELECT floor(extract(epoch FROM pg_postmaster_start_time()) * 1000)::float8 AS at`;
  if (found === undefined) throw new Error('BUG: the statement gives one row');
  return found.at;
}
