/**
 * A compute driver in memory, for the tests of everything above it. It keeps the promises of `ComputeDriver`, and the
 * contract suite checks that; its world is public, so that a test can assert that nothing is left in it.
 */

import { delay } from '../../lib/clock.ts';
import type { BranchHistory, ComputeLimits, LogEntry, ReplicationSlot, ServerCatalog } from '../../lib/model.ts';
import type { ChangesAfter, UsersTable } from '../../lib/users-sync.ts';
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
  type DetachSpec,
  type EmptySpec,
  type HistoryPolicy,
  type ReplicaData,
  type ReplicaObservation,
  type ResizeOutcome,
  type SettledServer,
  StaleGenerationError,
  type TenantRef,
  type WorkObservation,
} from '../interface/driver.ts';
import type { RoomObservation, ServerMeasures } from '../interface/measures.ts';
import { applyChange, catalogOf, type FakeBranch, syncFakeUsers } from './branch.ts';
import { commitTo, keepLog } from './history.ts';
import {
  copyIn,
  type FakeCompute,
  type FakeOptions,
  type FakeWorld,
  forgetProject,
  holderOf,
  ifRunning,
  lastCatalog,
  measuresOf,
  needRestart,
  observation,
  refOf,
  replaceIn,
  runningBranch,
  sampleOf,
  settledOf,
} from './world.ts';

const fakeBytes = 30_000_000;
const inReadOnly = 'cannot execute ALTER ROLE in a read-only transaction';

export type FakeMethod = Exclude<keyof ComputeDriver, 'cannot'>;

interface Failure {
  readonly error: Error;
  left: number;
}

export class FakeDriver implements ComputeDriver, FakeWorld {
  readonly branches: Map<string, FakeBranch>;
  readonly computes: Map<string, FakeCompute>;
  readonly replicas: Map<string, BranchRef>;
  /** Every call in the order it came, for tests that count them. */
  readonly calls: { readonly method: FakeMethod; readonly subject: string }[] = [];
  /** What computes have used, by endpoint; set by tests. */
  readonly usage = new Map<string, Partial<ComputeSample>>();
  /** Bytes of branches; set by tests. */
  readonly sizes = new Map<string, number>();
  /** What computes are busy with, by endpoint; set by tests. */
  readonly work = new Map<string, WorkObservation>();
  /** How many sessions of a compute are writing, by endpoint; set by tests. */
  readonly writers = new Map<string, number>();
  /** What servers have logged, by endpoint; set by tests. */
  readonly logs = new Map<string, readonly LogEntry[]>();
  /** Set by tests. */
  room: RoomObservation = { level: 'enough', freeBytes: 10_000_000_000, lowBytes: 1_000_000_000 };
  readonly listExtensions: ComputeDriver['listExtensions'] = async (pgVersion) =>
    this.#enter('listExtensions', String(pgVersion)).then(() => ({ extensions: [], note: 'there are no servers' }));
  readonly #options: FakeOptions;
  readonly #failures = new Map<FakeMethod, Failure>();
  #lastPid: number;

  constructor(options: FakeOptions = {}) {
    this.#options = options;
    this.branches = options.world?.branches ?? new Map();
    this.computes = options.world?.computes ?? new Map();
    this.replicas = options.world?.replicas ?? new Map();
    // No process of the given world is taken for one that is started later.
    this.#lastPid = Math.max(1000, ...Array.from(this.computes.values(), ({ process }) => process?.pid ?? 0));
  }

  /** The next `times` calls of a method fail and change nothing. */
  failNext(method: FakeMethod, error: Error, times = 1): void {
    this.#failures.set(method, { error, left: times });
  }

  /** The process dies, as in an accident. */
  kill(endpointId: string): void {
    const compute = this.computes.get(endpointId);
    if (compute) compute.process = null;
  }

  async createBranch(spec: BranchSpec): Promise<BranchCopy> {
    await this.#enter('createBranch', spec.branchId);
    const existing = this.branches.get(spec.branchId);
    if (existing) return { receipt: existing.receipt, source: null };
    const sourceId = spec.source.kind === 'template' ? null : spec.source.branchId;
    return copyIn(this, spec, this.sizes.get(sourceId ?? '') ?? fakeBytes);
  }

  async emptyBranch(spec: EmptySpec): Promise<void> {
    await this.#enter('emptyBranch', spec.branchId);
    if (!this.branches.has(spec.branchId)) throw new Error(`branch ${spec.branchId} has no data`);
  }

  async detachBranch(spec: DetachSpec): Promise<void> {
    await this.#enter('detachBranch', spec.branchId);
    const branch = this.branches.get(spec.branchId);
    if (!branch) throw new Error(`branch ${spec.branchId} has no data`);
    branch.isDetached = true;
  }

  async removeBranch(ref: BranchRef): Promise<void> {
    await this.#enter('removeBranch', ref.branchId);
    const holder = holderOf(this, ref.branchId);
    if (holder) holder.process = null;
    this.branches.delete(ref.branchId);
  }

  async replaceBranch(ref: BranchRef, replacement: BranchReplacement): Promise<void> {
    await this.#enter('replaceBranch', ref.branchId);
    replaceIn(this, ref, replacement);
  }

  async keepHistory(ref: BranchRef, { retentionSeconds }: HistoryPolicy): Promise<BranchHistory | null> {
    await this.#enter('keepHistory', ref.branchId);
    const branch = this.branches.get(ref.branchId);
    return branch === undefined ? null : keepLog(branch.log, branch, retentionSeconds);
  }

  async buildReplica(spec: ComputeSpec, anew = false): Promise<ReplicaData> {
    await this.#enter('buildReplica', spec.endpointId);
    this.#fence(spec.endpointId, spec.generation);
    const copied = this.replicas.get(spec.endpointId);
    if (copied?.branchId === spec.branchId && !anew) return 'kept';
    if (!holderOf(this, spec.branchId)) return 'needs_primary';
    this.replicas.set(spec.endpointId, refOf(spec));
    return 'built';
  }

  async observeReplica(ref: ComputeRef): Promise<ReplicaObservation | null> {
    await this.#enter('observeReplica', ref.endpointId);
    if (!holderOf(this, ref.branchId)) return null;
    return { lost: !this.replicas.has(ref.endpointId), lag: { bytes: 0, seconds: 0 } };
  }

  async start(spec: ComputeSpec): Promise<ComputeObservation | null> {
    await this.#enter('start', spec.endpointId);
    const { readOnly = false, frozen = false } = spec;
    const compute = this.#fence(spec.endpointId, spec.generation);
    const branch = this.branches.get(spec.branchId);
    if (!branch) throw new Error(`branch ${spec.branchId} has no data`);
    if (readOnly && !this.replicas.has(spec.endpointId)) throw new Error(`replica ${spec.endpointId} has no data`);
    if (branch.pgVersion !== spec.pgVersion) {
      throw new Error(`branch ${spec.branchId} is of Postgres ${branch.pgVersion}, not ${spec.pgVersion}`);
    }
    const holder = readOnly ? undefined : holderOf(this, spec.branchId);
    if (holder && holder !== compute) {
      throw new Error(`branch ${spec.branchId} is in use by ${holder.ref.endpointId}`);
    }
    if (compute?.process?.generation === spec.generation) return ifRunning(spec, compute);
    const answersAt = performance.now() + (this.#options.startupMs ?? 0);
    const started = {
      ref: refOf(spec),
      generation: spec.generation,
      settings: spec.settings,
      readOnly,
      frozen,
      limits: spec.limits,
      process: { pid: ++this.#lastPid, generation: spec.generation, answersAt, settings: spec.settings },
    };
    this.computes.set(spec.endpointId, started);
    return ifRunning(spec, started);
  }

  async expectClients(ref: ComputeRef): Promise<void> {
    await this.#enter('expectClients', ref.endpointId);
  }

  async observe(ref: ComputeRef): Promise<ComputeObservation> {
    await this.#enter('observe', ref.endpointId);
    return observation(ref, this.computes.get(ref.endpointId));
  }

  async reload(spec: ComputeSpec): Promise<readonly string[]> {
    await this.#enter('reload', spec.endpointId);
    const compute = this.#fence(spec.endpointId, spec.generation);
    if (compute?.process?.generation !== spec.generation) throw new Error(`compute ${spec.endpointId} is not running`);
    const { settings } = compute.process;
    compute.settings = spec.settings;
    return [...needRestart].filter((name) => settings[name] !== spec.settings[name]);
  }

  async resize(ref: ComputeRef, generation: number, limits: ComputeLimits): Promise<ResizeOutcome> {
    await this.#enter('resize', ref.endpointId);
    const compute = this.computes.get(ref.endpointId);
    if (compute?.process?.generation !== generation) throw new Error(`compute ${ref.endpointId} is not running`);
    const used = this.usage.get(ref.endpointId)?.usedBytes ?? 0;
    compute.limits = { ...limits, memoryBytes: Math.max(limits.memoryBytes, used) };
    return used > limits.memoryBytes ? 'postponed' : 'applied';
  }

  async sample(refs: readonly ComputeRef[]): Promise<ComputeSample[]> {
    await this.#enter('sample', '');
    return refs.flatMap(({ endpointId }) => {
      const compute = this.computes.get(endpointId);
      return compute?.process ? [sampleOf(compute, this.usage.get(endpointId) ?? {})] : [];
    });
  }

  async observeWork(ref: ComputeRef): Promise<WorkObservation> {
    await this.#enter('observeWork', ref.endpointId);
    return this.work.get(ref.endpointId) ?? { work: null, lastWorkAt: null };
  }

  async observeSlots(ref: ComputeRef): Promise<readonly ReplicationSlot[] | null> {
    await this.#enter('observeSlots', ref.endpointId);
    return runningBranch(this, ref)?.slots ?? null;
  }

  async measure(ref: ComputeRef): Promise<ServerMeasures | null> {
    await this.#enter('measure', ref.endpointId);
    return measuresOf(this.computes.get(ref.endpointId));
  }

  async observeSize(ref: ComputeRef): Promise<number | null> {
    await this.#enter('observeSize', ref.endpointId);
    const isRunning = observation(ref, this.computes.get(ref.endpointId)).state === 'running';
    return isRunning ? (this.sizes.get(ref.branchId) ?? fakeBytes) : null;
  }

  async endWriters(ref: ComputeRef): Promise<number> {
    await this.#enter('endWriters', ref.endpointId);
    return this.writers.get(ref.endpointId) ?? 0;
  }

  async readLog({ endpointId }: Pick<ComputeRef, 'endpointId'>, limit: number): Promise<readonly LogEntry[]> {
    await this.#enter('readLog', endpointId);
    return (this.logs.get(endpointId) ?? []).slice(-limit);
  }

  async observeRoom(): Promise<RoomObservation> {
    await this.#enter('observeRoom', 'machine');
    return this.room;
  }

  async checkSettings(pgVersion: number, settings: Readonly<Record<string, string>>): Promise<string | null> {
    await this.#enter('checkSettings', String(pgVersion));
    const unknown = Object.keys(settings).find((name) => name.startsWith('no_such'));
    return unknown === undefined ? null : `unrecognized configuration parameter "${unknown}"`;
  }

  async settle(ref: ComputeRef): Promise<SettledServer | null> {
    await this.#enter('settle', ref.endpointId);
    return settledOf(this, ref, this.sizes.get(ref.branchId) ?? fakeBytes);
  }

  async suspend(ref: ComputeRef, generation: number, settled?: SettledServer): Promise<ServerCatalog | null> {
    await this.#enter('suspend', ref.endpointId);
    const compute = this.#fence(ref.endpointId, generation);
    if (!compute) return null;
    const held = lastCatalog(this, compute, settled);
    compute.generation = generation;
    compute.process = null;
    return held;
  }

  async removeCompute(ref: ComputeRef): Promise<void> {
    await this.#enter('removeCompute', ref.endpointId);
    this.computes.delete(ref.endpointId);
    this.replicas.delete(ref.endpointId);
  }

  async removeProject(ref: TenantRef): Promise<void> {
    await this.#enter('removeProject', ref.projectId);
    forgetProject(this, ref.projectId);
  }

  async readCatalog(ref: ComputeRef): Promise<ServerCatalog> {
    await this.#enter('readCatalog', ref.endpointId);
    return catalogOf(this.#primary(ref));
  }

  async configure(ref: ComputeRef, change: CatalogChange): Promise<ServerCatalog> {
    await this.#enter('configure', ref.endpointId);
    if (this.computes.get(ref.endpointId)?.frozen) throw new Error(inReadOnly);
    const branch = this.#primary(ref);
    applyChange(branch, change);
    commitTo(branch.log, branch);
    return catalogOf(branch);
  }

  #primary(ref: ComputeRef): FakeBranch {
    if (this.computes.get(ref.endpointId)?.readOnly) throw new Error(`compute ${ref.endpointId} is read-only`);
    const branch = runningBranch(this, ref);
    if (!branch) throw new Error(`compute ${ref.endpointId} is not running`);
    return branch;
  }

  async syncUsers(ref: ComputeRef, table: UsersTable, changesAfter: ChangesAfter): Promise<number | null> {
    await this.#enter('syncUsers', ref.endpointId);
    const branch = runningBranch(this, ref);
    return branch === undefined ? null : syncFakeUsers(branch, table, changesAfter);
  }

  async dropUsers(ref: ComputeRef, database: string): Promise<boolean> {
    await this.#enter('dropUsers', ref.endpointId);
    const branch = runningBranch(this, ref);
    branch?.users.delete(database);
    return branch !== undefined;
  }

  async list(): Promise<ComputeObservation[]> {
    await this.#enter('list', '');
    const running = [...this.computes.values()].filter((compute) => compute.process);
    return running.map((compute) => observation(compute.ref, compute));
  }

  async #enter(method: FakeMethod, subject: string): Promise<void> {
    this.calls.push({ method, subject });
    await delay(this.#options.delayMs?.[method] ?? 0);
    const failure = this.#failures.get(method);
    if (!failure || failure.left === 0) return;
    failure.left--;
    throw failure.error;
  }

  #fence(endpointId: string, generation: number): FakeCompute | undefined {
    const compute = this.computes.get(endpointId);
    if (compute && generation < compute.generation) {
      throw new StaleGenerationError(endpointId, generation, compute.generation);
    }
    return compute;
  }
}
