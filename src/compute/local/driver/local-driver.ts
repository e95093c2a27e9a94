/**
 * The local driver, as child processes use it: calls to the host in the parent process, which owns directories and
 * processes, and the SQL that checks whether a server answers and what it holds.
 */

import { BackgroundWork } from '../../../lib/background-work.ts';
import { delay } from '../../../lib/clock.ts';
import type {
  BranchHistory,
  ComputeAddress,
  ComputeLimits,
  LogEntry,
  ReplicationSlot,
  ServerCatalog,
} from '../../../lib/model.ts';
import type { ChangesAfter, UsersTable } from '../../../lib/users-sync.ts';
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
  type EmptySpec,
  type HistoryPolicy,
  type ReplicaData,
  type ReplicaObservation,
  type ResizeOutcome,
  type SettledServer,
  StaleGenerationError,
  type TenantRef,
  type WorkObservation,
} from '../../interface/driver.ts';
import type { RoomObservation, ServerMeasures } from '../../interface/measures.ts';
import {
  adminLogin,
  type EnterAs,
  isFull,
  isNotReady,
  isRefused,
  openSession,
  type Session,
  withSession,
} from '../../server/admin-session.ts';
import type { Ways } from '../../server/blockers.ts';
import { applyCatalogChange, readCatalog } from '../../server/configure.ts';
import { readSlots } from '../../server/logical-replication.ts';
import { readMeasures } from '../../server/measures.ts';
import { takesLogins } from '../../server/probe.ts';
import { dropUsers, syncUsers } from '../../server/users-sync.ts';
import { endWriters, readSize, readWork } from '../../server/work.ts';
import type { EndpointRef, HostCalls, HostedCompute, LogRef } from '../channel/host-calls.ts';
import { replaceFirstSecret } from './first-secret.ts';
import { keepHistory } from './history.ts';
import { KeptSessions } from './kept-sessions.ts';
import { checkpointAndRead, nothingWritten, settleServer } from './last-state.ts';
import { cloneLive } from './live-clone.ts';
import { parseLog } from './log-lines.ts';
import { absent, addressOf, observation } from './observation.ts';
import { detachBranch, emptyBranch } from './private-work.ts';
import { recoverBranch } from './recovery.ts';
import { buildReplica, observeReplica, removeReplicaSlot } from './replicas.ts';

interface RunningServer {
  readonly address: ComputeAddress;
  readonly adminSecret: string;
}

const reloadMsMax = 5_000;
/** A base image that takes longer is finished behind its caller's back. */
const baseWaitMs = 1_000;

export class LocalDriver implements ComputeDriver {
  readonly #host: HostCalls;
  /** Pids of servers that are known to accept logins, so that a listing does not probe hundreds of them each time. */
  readonly #answered = new Map<string, number>();
  readonly #bases = new BackgroundWork(baseWaitMs);
  readonly #sessions = new KeptSessions();

  constructor(host: HostCalls) {
    this.#host = host;
  }

  async createBranch(spec: BranchSpec): Promise<BranchCopy> {
    if (spec.source.kind === 'history') return recoverBranch(this.#host, spec, spec.source);
    const source = spec.source.kind === 'template' ? null : await this.#host.findSourceServer(spec);
    if (source === null || spec.source.kind === 'template') {
      return { receipt: await this.#host.createBranch(spec), source: null };
    }
    if (!(await this.#answers({ ...source, tenantUid: spec.tenantUid }, source))) {
      throw new Error(`the server of branch ${spec.source.branchId} does not answer yet`);
    }
    const { projectId, tenantUid, branchId, pgVersion } = spec;
    const clone = { projectId, tenantUid, branchId, pgVersion, sourceId: source.branchId, replica: null };
    return cloneLive(this.#host, source, clone);
  }

  emptyBranch(spec: EmptySpec): Promise<void> {
    return emptyBranch(this.#host, spec);
  }

  detachBranch(spec: DetachSpec): Promise<void> {
    return detachBranch(this.#host, spec);
  }

  removeBranch(ref: BranchRef): Promise<void> {
    return this.#host.removeBranch(ref);
  }

  replaceBranch(ref: BranchRef, by: BranchReplacement): Promise<void> {
    return this.#host.replaceBranch(ref, by);
  }

  keepHistory(ref: BranchRef, policy: HistoryPolicy): Promise<BranchHistory | null> {
    return keepHistory({ host: this.#host, bases: this.#bases }, ref, policy);
  }

  buildReplica(spec: ComputeSpec, anew = false): Promise<ReplicaData> {
    return buildReplica(this.#host, spec, anew);
  }

  observeReplica(ref: ComputeRef): Promise<ReplicaObservation | null> {
    return observeReplica(this.#host, ref);
  }

  async start(spec: ComputeSpec): Promise<ComputeObservation | null> {
    const compute = await this.#host.start(spec);
    if (!compute?.process?.ready) return null;
    // A fresh clone gets its project's secret here, or from the first observation.
    if (compute.firstSecret !== null && !(await this.#answers(spec, compute))) return null;
    // The postmaster's own report, which `pg_ctl start` also waits for: a probe would only cost the client time.
    this.#answered.set(spec.endpointId, compute.process.pid);
    return observation(spec, compute, true);
  }

  readonly expectClients: ComputeDriver['expectClients'] = (...args) => this.#host.expectClients(...args);

  async observe(ref: ComputeRef): Promise<ComputeObservation> {
    const compute = await this.#host.inspect(ref);
    if (!compute?.process) return absent(ref);
    return observation(ref, compute, await this.#answers(ref, compute));
  }

  async reload(spec: ComputeSpec): Promise<readonly string[]> {
    const login = adminLogin(spec.adminSecret);
    const loadedAt = (sql: Session) =>
      sql<{ at: Date }[]>`SELECT pg_conf_load_time()::text AS at`.then((rows) => rows[0]?.at);
    const address = await this.#addressOf(spec);
    const before = await withSession(address, login, loadedAt);
    await this.#host.reload(spec);
    // The postmaster rereads the file asynchronously; a question asked before that would be answered from the old one.
    const giveUpAt = Date.now() + reloadMsMax;
    while ((await withSession(address, login, loadedAt)) === before) {
      if (Date.now() > giveUpAt) throw new Error(`the server of ${spec.endpointId} did not read its new settings`);
      await delay(5);
    }
    return withSession(address, login, async (sql) => {
      const rows = await sql<{ name: string }[]>`SELECT name FROM pg_settings WHERE pending_restart ORDER BY name`;
      return rows.map((row) => row.name);
    });
  }

  resize(ref: ComputeRef, generation: number, limits: ComputeLimits): Promise<ResizeOutcome> {
    return this.#host.resize(ref, generation, limits);
  }

  sample(refs: readonly ComputeRef[]): Promise<ComputeSample[]> {
    return refs.length === 0 ? Promise.resolve([]) : this.#host.sample(refs);
  }

  async observeWork(ref: ComputeRef): Promise<WorkObservation> {
    const compute = await this.#host.inspect(ref);
    if (!compute?.process) return { work: null, lastWorkAt: null };
    return withSession(addressOf(compute), adminLogin(compute.adminSecret), readWork);
  }

  observeSlots(ref: ComputeRef): Promise<readonly ReplicationSlot[] | null> {
    return this.#onRunning(ref, ({ address, adminSecret }) => withSession(address, adminLogin(adminSecret), readSlots));
  }

  async measure(ref: ComputeRef): Promise<ServerMeasures | null> {
    const compute = await this.#host.inspect(ref);
    if (!compute?.process?.ready) return null;
    return withSession(addressOf(compute), adminLogin(compute.adminSecret), readMeasures);
  }

  async observeSize(ref: ComputeRef): Promise<number | null> {
    const compute = await this.#host.inspect(ref);
    if (!compute?.process?.ready) return null;
    return withSession(addressOf(compute), adminLogin(compute.adminSecret), readSize);
  }

  async endWriters(ref: ComputeRef): Promise<number> {
    const compute = await this.#host.inspect(ref);
    if (!compute?.process?.ready) return 0;
    return withSession(addressOf(compute), adminLogin(compute.adminSecret), endWriters);
  }

  async readLog({ projectId, endpointId }: LogRef, limit: number): Promise<readonly LogEntry[]> {
    return parseLog(await this.#host.readLog({ projectId, endpointId }), limit);
  }

  observeRoom(): Promise<RoomObservation> {
    return this.#host.observeRoom();
  }

  readonly checkSettings: ComputeDriver['checkSettings'] = (...args) => this.#host.checkSettings(...args);
  readonly listExtensions: ComputeDriver['listExtensions'] = (pgVersion) => this.#host.listExtensions(pgVersion);

  async #addressOf(ref: ComputeRef): Promise<ComputeAddress> {
    const compute = await this.#host.inspect(ref);
    if (!compute?.process) throw new Error(`compute ${ref.endpointId} is not running`);
    return addressOf(compute);
  }

  async settle(ref: ComputeRef): Promise<SettledServer | null> {
    const compute = await this.#host.inspect(ref);
    if (compute === null || compute.readOnly || !(await this.#answers(ref, compute))) return null;
    return settleServer(compute);
  }

  async suspend(ref: ComputeRef, generation: number, settled?: SettledServer): Promise<ServerCatalog | null> {
    const last = settled?.position == null ? await this.#readLast(ref, generation) : settled;
    const end = await this.#host.stop(ref, generation);
    this.#answered.delete(ref.endpointId);
    if (last?.position == null || end === null) return null;
    return nothingWritten(last.position, end) ? last.catalog : null;
  }

  async #readLast(ref: ComputeRef, generation: number): ReturnType<typeof checkpointAndRead> {
    const compute = await this.#host.inspect(ref);
    if (compute && generation < compute.seenGeneration) {
      throw new StaleGenerationError(ref.endpointId, generation, compute.seenGeneration);
    }
    return compute?.process?.ready ? checkpointAndRead(compute) : null;
  }

  async removeCompute(ref: ComputeRef): Promise<void> {
    const compute = await this.#host.inspect(ref);
    if (compute?.readOnly) {
      await this.#host.stop(ref, compute.seenGeneration);
      await removeReplicaSlot(this.#host, { ...ref, branchId: compute.branchId });
    }
    await this.#host.removeCompute(ref);
    this.#answered.delete(ref.endpointId);
  }

  removeProject(ref: TenantRef): Promise<void> {
    return this.#host.removeProject(ref);
  }

  readCatalog(ref: ComputeRef): Promise<ServerCatalog> {
    return this.#onPrimary(ref, readCatalog);
  }

  configure(ref: ComputeRef, change: CatalogChange): Promise<ConfiguredCatalog> {
    return this.#onPrimary(ref, (sql, { address, adminSecret }) => {
      const enterAs: EnterAs = (login, work) => withSession(address, login, work);
      const asAdmin: Ways['asAdmin'] = (work) => enterAs(adminLogin(adminSecret), work);
      return applyCatalogChange(sql, change, { ways: { enterAs, asAdmin }, hasOwnUid: ref.tenantUid !== null });
    });
  }

  async #onPrimary<T>(ref: ComputeRef, work: (sql: Session, server: RunningServer) => Promise<T>): Promise<T> {
    const compute = await this.#host.inspect(ref);
    const notRunning = (cause?: unknown) => new Error(`compute ${ref.endpointId} is not running`, { cause });
    if (!compute?.process?.ready) throw notRunning();
    if (compute.readOnly) throw new Error(`compute ${ref.endpointId} is read-only: its primary is configured instead`);
    // A server that still has the template's secret first gets its own; any other proves itself by what follows.
    if (compute.firstSecret !== null && !(await this.#answers(ref, compute))) throw notRunning();
    const { adminSecret } = compute;
    const server = { address: addressOf(compute), adminSecret };
    const { pid } = compute.process;
    const open = () => openSession(server.address, adminLogin(adminSecret));
    try {
      return await this.#sessions.use({ ...ref, pid }, open, (sql) => work(sql, server));
    } catch (error) {
      throw isNotReady(error) ? notRunning(error) : error;
    }
  }

  async syncUsers(ref: ComputeRef, table: UsersTable, changesAfter: ChangesAfter): Promise<number | null> {
    return this.#onRunning(ref, (server) => syncUsers(server, table, changesAfter));
  }

  async dropUsers(ref: ComputeRef, database: string): Promise<boolean> {
    const done = await this.#onRunning(ref, async (server) => {
      await dropUsers(server, database);
      return true;
    });
    return done ?? false;
  }

  /** Null when the server is not running, or goes away during the work; a full one is running, so that fails. */
  async #onRunning<T>(ref: ComputeRef, work: (server: RunningServer) => Promise<T>): Promise<T | null> {
    const compute = await this.#host.inspect(ref);
    if (!compute?.process?.ready || compute.readOnly || compute.branchId !== ref.branchId) return null;
    if (compute.firstSecret !== null && !(await this.#answers(ref, compute))) return null;
    try {
      return await work({ address: addressOf(compute), adminSecret: compute.adminSecret });
    } catch (error) {
      if (isNotReady(error) && !isFull(error)) return null;
      throw error;
    }
  }

  async list(): Promise<ComputeObservation[]> {
    const computes = await this.#host.list();
    return Promise.all(
      computes.map(async (compute) => {
        const known = compute.process?.ready && this.#answered.get(compute.endpointId) === compute.process.pid;
        // The tenant's uid is not needed to inspect a compute, and a listing has no reference to take it from.
        const ref = { ...compute, tenantUid: null };
        return observation(compute, compute, known || (await this.#answers(ref, compute).catch(() => false)));
      }),
    );
  }

  /** Whether the server accepts logins. A fresh clone first gets its project's secret. */
  async #answers(ref: EndpointRef, compute: HostedCompute): Promise<boolean> {
    if (!compute.process?.ready) return false;
    // Asked once: every further probe would cost each wake a backend of the server.
    if (compute.firstSecret === null && this.#answered.get(compute.endpointId) === compute.process.pid) return true;
    try {
      if (compute.firstSecret === null) {
        if (!(await takesLogins(addressOf(compute)))) return false;
      } else {
        const sql = await replaceFirstSecret(compute, compute.firstSecret);
        this.#sessions.keep(compute.endpointId, compute.process.pid, sql);
        await this.#host.forgetFirstSecret(ref);
      }
    } catch (error) {
      if (isNotReady(error)) return false;
      if (isRefused(error)) {
        throw new Error(`the server of ${compute.endpointId} refuses Catnap's login`, { cause: error });
      }
      throw error;
    }
    this.#answered.set(compute.endpointId, compute.process.pid);
    return true;
  }
}
