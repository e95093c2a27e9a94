/** The data of branches: made empty, copied from another branch, exchanged for that of another. */
import type {
  BranchCopy,
  BranchReceipt,
  BranchRef,
  BranchReplacement,
  BranchSpec,
  SourceState,
} from '../../interface/driver.ts';
import type { Session } from '../../server/admin-session.ts';
import { isStillCalm, observeSource } from '../../server/copied-state.ts';
import { readSize } from '../../server/work.ts';
import { labelsOfBranch } from '../manifests/labels.ts';
import { wantedDepth } from '../manifests/sleep.ts';
import type { Cluster } from '../objects/kinds.ts';
import { type BranchClusters, receiptOf } from './branch-clusters.ts';
import type { ComputeServers } from './compute-servers.ts';
import { checkpointMsMax } from './last-words.ts';
import type { ReplicaClusters } from './replica-clusters.ts';

export class BranchData {
  readonly #branches: BranchClusters;
  readonly #servers: ComputeServers;
  readonly #replicas: ReplicaClusters;

  constructor(branches: BranchClusters, servers: ComputeServers, replicas: ReplicaClusters) {
    this.#branches = branches;
    this.#servers = servers;
    this.#replicas = replicas;
  }

  async create(spec: BranchSpec): Promise<BranchCopy> {
    const begin = performance.now();
    const source = spec.source.kind === 'branch' ? await this.#findSource(spec, spec.source.branchId) : null;
    const found = await this.#branches.find(spec);
    const receipt = found && receiptOf(found);
    if (receipt !== null) return { receipt, source: null };
    const look = (made: Cluster) => this.#firstLook(made, begin);
    if (source === null) {
      return { receipt: receiptIn(await this.#branches.createEmpty(spec, spec.pgVersion, look)), source: null };
    }
    let state: SourceState | null = null;
    const during = async (take: () => Promise<void>) => {
      if (wantedDepth(source) !== 'awake') return take();
      state = await this.#watching(source, take);
    };
    const made = await this.#branches.copy(spec, spec.pgVersion, source, look, during);
    return { receipt: receiptIn(made), source: state };
  }

  /** The old data goes first, or gets its new name; a call that is repeated after any of these steps goes on there. */
  async replace(ref: BranchRef, { stagingId, keepAs }: BranchReplacement): Promise<void> {
    const old = await this.#branches.find(ref);
    const staged = await this.#branches.find({ ...ref, branchId: stagingId });
    if (staged === null && old === null) throw new Error(`branch ${ref.branchId} has no data`);
    if (staged === null) return;
    await this.#replicas.removeFollowers(ref);
    if (old !== null) await this.#branches.stopThis(old);
    if (old !== null && keepAs !== null) await this.#branches.rename(old, { ...ref, branchId: keepAs });
    else if (old !== null) await this.#branches.remove(labelsOfBranch(ref));
    await this.#branches.rename(staged, ref);
  }

  async #findSource(ref: BranchRef, branchId: BranchRef['branchId']): Promise<Cluster> {
    const found = await this.#branches.find({ ...ref, branchId });
    if (found === null) throw new Error(`branch ${branchId} has no data`);
    return found;
  }

  /**
   * A snapshot is what a power cut would leave. The checkpoint makes sure that what was committed before it is on disk,
   * also where commits do not wait for that, and leaves the copy little to recover.
   */
  async #watching(source: Cluster, take: () => Promise<void>): Promise<SourceState> {
    const watch = async (sql: Session) => {
      const seen = await observeSource(sql);
      await sql`CHECKPOINT`;
      await take();
      const { catalog, bytes } = seen;
      return { catalog, bytes, isExact: await isStillCalm(sql, seen) };
    };
    return this.#servers.enterServed(source, watch, { statementMs: checkpointMsMax });
  }

  /** The storage may share blocks between a volume and its copy, which Kubernetes does not tell. */
  async #firstLook(made: Cluster, begin: number): Promise<BranchReceipt> {
    const { lsn, bytes } = await this.#servers.enterUnserved(made, async (sql) => {
      const [found] = await sql<{ lsn: string }[]>`SELECT redo_lsn::text AS lsn FROM pg_control_checkpoint()`;
      return { lsn: found?.lsn ?? null, bytes: await readSize(sql) };
    });
    return { method: 'copy', lsn, durationMs: Math.round(performance.now() - begin), bytes, bytesShared: 0 };
  }
}

function receiptIn(made: Cluster): BranchReceipt {
  const receipt = receiptOf(made);
  if (receipt === null) throw new Error(`BUG: the Cluster ${made.metadata.name} has no receipt`);
  return receipt;
}
