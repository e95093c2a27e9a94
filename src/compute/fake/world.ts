/** What the fake driver keeps in memory, and how it reports its computes. */

import type { ComputeLimits, ServerCatalog } from '../../lib/model.ts';
import { lsnText } from '../../lib/moments.ts';
import type {
  BranchCopy,
  BranchRef,
  BranchReplacement,
  BranchSpec,
  ComputeDriver,
  ComputeObservation,
  ComputeRef,
  ComputeSample,
  SettledServer,
} from '../interface/driver.ts';
import type { ServerMeasures } from '../interface/measures.ts';
import { catalogOf, type FakeBranch } from './branch.ts';
import { beginLog, newLog, versionAt } from './history.ts';

interface FakeProcess {
  readonly pid: number;
  readonly generation: number;
  readonly answersAt: number;
  /** That it was started with. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface FakeCompute {
  ref: ComputeRef;
  /** The newest generation seen. */
  generation: number;
  process: FakeProcess | null;
  settings: Readonly<Record<string, string>>;
  limits: ComputeLimits;
  readOnly: boolean;
  frozen: boolean;
  /** How often it was measured. */
  timesMeasured?: number;
}

export interface FakeWorld {
  readonly branches: Map<string, FakeBranch>;
  readonly computes: Map<string, FakeCompute>;
  /** The branch that the data of each replica was copied from, by endpoint. */
  readonly replicas: Map<string, BranchRef>;
}

export interface FakeOptions {
  /** How long a call of each method takes; 0 by default. */
  readonly delayMs?: Partial<Record<keyof ComputeDriver, number>>;
  /** From the start of a process until it answers; 0 by default. */
  readonly startupMs?: number;
  /** The world of an earlier driver, as after a restart of Catnap. */
  readonly world?: FakeWorld;
}

export function refOf({ projectId, branchId, endpointId, tenantUid }: ComputeRef): ComputeRef {
  return { projectId, branchId, endpointId, tenantUid };
}

/** What `start` returns. */
export function ifRunning(ref: ComputeRef, compute: FakeCompute): ComputeObservation | null {
  const seen = observation(ref, compute);
  return seen.state === 'running' ? seen : null;
}

export function observation(ref: ComputeRef, compute: FakeCompute | undefined): ComputeObservation {
  const { endpointId, projectId } = ref;
  if (!compute?.process) {
    return {
      endpointId,
      projectId,
      state: 'absent',
      generation: 0,
      pid: null,
      release: null,
      isEnforced: false,
      address: null,
      branchId: null,
    };
  }
  const { pid, generation, answersAt } = compute.process;
  const running = performance.now() >= answersAt;
  return {
    endpointId,
    projectId,
    generation,
    pid,
    release: 'fake',
    isEnforced: true,
    state: running ? 'running' : 'starting',
    address: running ? { kind: 'unix', path: `/fake/${endpointId}` } : null,
    branchId: compute.ref.branchId,
  };
}

/** The limits in force, and no usage except what a test sets. */
export function sampleOf(compute: FakeCompute, usage: Partial<ComputeSample>): ComputeSample {
  return {
    endpointId: compute.ref.endpointId,
    isEnforced: true,
    cpuSeconds: 0,
    periods: 0,
    throttledPeriods: 0,
    usedBytes: 0,
    cacheBytes: 0,
    workingSetBytes: 0,
    refaultBytes: 0,
    oomKills: 0,
    isPaused: false,
    cpus: compute.limits.cpus,
    memoryLimitBytes: compute.limits.memoryBytes,
    waitsAtLimit: compute.limits.mayGrow,
    ...usage,
  };
}

/** An idle server that writes one kilobyte between two measurements, in a WAL that has skipped a segment. */
export function measuresOf(compute: FakeCompute | undefined): ServerMeasures | null {
  if (!compute?.process) return null;
  compute.timesMeasured = (compute.timesMeasured ?? 0) + 1;
  return {
    connectionsActive: 1,
    connectionsIdle: 2,
    connectionsMax: 112,
    transactions: 10 * compute.timesMeasured,
    blocksHit: 900 * compute.timesMeasured,
    blocksRead: 100 * compute.timesMeasured,
    wal: compute.readOnly
      ? null
      : { bytes: 1_024 * compute.timesMeasured, position: 2 * 16_777_216 + 1_024 * compute.timesMeasured },
  };
}

/** The data of a read-write compute that answers. */
export function runningBranch({ branches, computes }: FakeWorld, ref: ComputeRef): FakeBranch | undefined {
  const compute = computes.get(ref.endpointId);
  const isRunning = compute?.readOnly === false && observation(ref, compute).state === 'running';
  return isRunning ? branches.get(compute.ref.branchId) : undefined;
}

/** The compute whose server runs on a branch's own data. */
export function holderOf({ computes }: FakeWorld, branchId: string): FakeCompute | undefined {
  return [...computes.values()].find(({ ref, process, readOnly }) => process && !readOnly && ref.branchId === branchId);
}

/** What `settle` returns: its mark is all that the server holds. */
export function settledOf(world: FakeWorld, ref: ComputeRef, bytes: number): SettledServer | null {
  const branch = runningBranch(world, ref);
  if (branch === undefined) return null;
  const catalog = catalogOf(branch);
  const compute = world.computes.get(ref.endpointId);
  const branchId = compute?.ref.branchId ?? ref.branchId;
  return { branchId, catalog, bytes, wal: measuresOf(compute)?.wal ?? null, position: JSON.stringify(catalog) };
}

/** What `suspend` returns: null when something was changed after the server was settled. */
export function lastCatalog(
  { branches }: FakeWorld,
  { process, readOnly, ref }: FakeCompute,
  settled: SettledServer | undefined,
): ServerCatalog | null {
  const branch = branches.get(ref.branchId);
  if (!process || readOnly || !branch) return null;
  const catalog = catalogOf(branch);
  const isSame = settled === undefined || settled.position === JSON.stringify(catalog);
  return isSame ? catalog : null;
}

export function forgetProject({ branches, computes, replicas }: FakeWorld, projectId: string): void {
  for (const [id, compute] of computes) if (compute.ref.projectId === projectId) computes.delete(id);
  for (const [id, of] of replicas) if (of.projectId === projectId) replicas.delete(id);
  for (const [id, branch] of branches) if (branch.projectId === projectId) branches.delete(id);
}

/** `bytes` is the size of the source, which its server reports if it runs. */
export function copyIn(world: FakeWorld, spec: BranchSpec, bytes: number): BranchCopy {
  const source = spec.source.kind === 'template' ? null : sourceOf(world, spec, spec.source.branchId);
  const past = source && spec.source.kind === 'history' ? versionAt(source.log, source, spec.source.moment) : null;
  const content = past?.content ?? source;
  const log = newLog(past?.lsn ?? source?.log.lsn);
  const receipt = { method: 'copy', lsn: lsnText(log.lsn), durationMs: 0, bytes: 0, bytesShared: 0 } as const;
  const made: FakeBranch = {
    projectId: spec.projectId,
    pgVersion: spec.pgVersion,
    receipt,
    roles: new Map(content?.roles),
    databases: new Map(content?.databases),
    users: new Map(content?.users),
    replicates: source?.replicates ?? false,
    isDetached: false,
    log,
    slots: [],
  };
  beginLog(log, made);
  world.branches.set(spec.branchId, made);
  if (past !== null) return { receipt, source: { catalog: catalogOf(made), bytes, isExact: true } };
  const servers = [...world.computes.values()].filter(({ process, readOnly }) => process !== null && !readOnly);
  const isAwake = servers.some(({ ref }) => world.branches.get(ref.branchId) === source);
  return { receipt, source: source && isAwake ? { catalog: catalogOf(source), bytes, isExact: true } : null };
}

function sourceOf({ branches }: FakeWorld, spec: BranchSpec, branchId: string): FakeBranch {
  const source = branches.get(branchId);
  if (!source || source.projectId !== spec.projectId) throw new Error(`branch ${branchId} has no data`);
  if (source.pgVersion !== spec.pgVersion) throw new Error(`branch ${branchId} has another version`);
  return source;
}

export function replaceIn(
  { branches, computes, replicas }: FakeWorld,
  ref: BranchRef,
  { stagingId, keepAs }: BranchReplacement,
): void {
  const [staged, old] = [branches.get(stagingId), branches.get(ref.branchId)];
  if (!staged && !old) throw new Error(`branch ${ref.branchId} has no data`);
  if (!staged) return;
  for (const [id, compute] of computes) {
    if (compute.ref.branchId !== ref.branchId) continue;
    compute.process = null;
    if (compute.readOnly) replicas.delete(id);
  }
  if (old && keepAs !== null) branches.set(keepAs, old);
  beginLog(staged.log, staged);
  branches.set(ref.branchId, staged);
  branches.delete(stagingId);
}

/** The settings used in tests that Postgres reads only at a start. */
export const needRestart: ReadonlySet<string> = new Set([
  'max_connections',
  'max_locks_per_transaction',
  'shared_buffers',
  'wal_level',
]);
