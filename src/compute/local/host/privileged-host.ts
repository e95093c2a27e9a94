/**
 * The privileged half of the local driver: it alone touches directories and processes of tenants, and runs in the
 * parent process (as root when root started Catnap). It takes ids, never paths, runs no SQL, and does one thing at a
 * time for an endpoint and for a branch.
 */
import { join } from 'node:path';
import type { Config } from '../../../lib/config.ts';
import { asBranchId, asEndpointId, asProjectId } from '../../../lib/ids.ts';
import { KeyedLock } from '../../../lib/keyed-lock.ts';
import type { ComputeLimits } from '../../../lib/model.ts';
import type {
  BranchReceipt,
  BranchRef,
  BranchReplacement,
  BranchSpec,
  ComputeRef,
  ComputeSample,
  ComputeSpec,
  ResizeOutcome,
  TenantRef,
} from '../../interface/driver.ts';
import { StaleGenerationError } from '../../interface/driver.ts';
import type { LimitsProblem, TemporaryDiskEnforcement } from '../../interface/driver-host.ts';
import type { EndpointRef, HostCalls, HostedCompute } from '../channel/host-calls.ts';
import { createBranchDirectory } from './branches/create.ts';
import { LiveClones } from './branches/live-clones.ts';
import { closePrivateServer, openPrivateServer, type PrivateServerParts } from './branches/private-server.ts';
import { type BranchDataParts, removeBranchData, removeSlotOf, replaceBranchData } from './branches/replace.ts';
import { Spares } from './branches/spares.ts';
import { Cgroups } from './cgroups/compute-groups.ts';
import { findEnforcedServer, inspectCompute, listComputes } from './computes/inspect.ts';
import { ReadyServers } from './computes/ready-servers.ts';
import { resizeCompute, sampleComputes } from './computes/sizes.ts';
import { reloadServer, type ServerParts, startServer } from './computes/start.ts';
import { stopServer } from './computes/stop.ts';
import { inDiskWords } from './copy/room.ts';
import type { DiskLog } from './disks/released.ts';
import { type DiskLocation, diskLocationOf, TemporaryDisks } from './disks/temporary.ts';
import { type BaseCopies, baseCopies } from './history/bases.ts';
import { Histories } from './history/histories.ts';
import { Recoveries } from './history/recoveries.ts';
import type { Layout } from './home/layout.ts';
import { removeLeftovers } from './home/leftovers.ts';
import { branchLock, endpointLock } from './home/lock-names.ts';
import {
  type EndpointRecord,
  readBranchRecord,
  readEndpointRecord,
  removeFirstSecret,
  writeEndpointRecord,
} from './home/records.ts';
import { RoomWatch } from './home/room.ts';
import { type DataRef, dataDirectoryOf, dataHome } from './home/server-data.ts';
import { discard, idsIn, TenantDirectories } from './home/tenant-directories.ts';
import { Networks } from './network/networks.ts';
import { removeUnusedBuilds } from './postgres/builds.ts';
import { findHolder, type Holder } from './postgres/holder.ts';
import { Majors } from './postgres/majors.ts';
import { stopPostmaster } from './postgres/postmaster.ts';
import { LogKeeper } from './postgres/server-log.ts';
import { checkSettings } from './postgres/settings-check.ts';

/** Copies of the template that are kept when many projects are made, for each that is kept at all times. */
const sparesInDemand = 8;

export type HostConfig = Pick<Config, 'home' | 'uids' | 'pgBin' | 'outboundAllow' | 'extensions'>;

export class PrivilegedHost implements HostCalls {
  readonly readyServers = new ReadyServers();
  readonly #layout: Layout;
  readonly #tenants: TenantDirectories;
  readonly #locks = new KeyedLock();
  readonly #majors: Majors;
  readonly #liveClones: LiveClones;
  readonly #disks: TemporaryDisks;
  readonly #cgroups: Cgroups;
  readonly #networks: Networks;
  readonly #spares: Spares;
  readonly #serverParts: ServerParts;
  readonly #branchDataParts: BranchDataParts;
  readonly #privateParts: PrivateServerParts;
  readonly #histories: Histories;
  readonly #recoveries: Recoveries;
  readonly #room: RoomWatch;
  readonly #logs: LogKeeper;
  readonly #log: DiskLog;

  constructor(
    config: HostConfig,
    layout: Layout,
    log: DiskLog = () => undefined,
    spareCount = 0,
    copies: BaseCopies = baseCopies,
  ) {
    this.#log = log;
    this.#spares = new Spares({ usual: spareCount, most: spareCount * sparesInDemand });
    this.#layout = layout;
    this.#room = new RoomWatch(layout);
    this.#logs = new LogKeeper(layout, (error) => log(error, 'the log of a server could not be cut'));
    this.#tenants = new TenantDirectories(layout, config.uids);
    this.#majors = new Majors(config, layout);
    this.#liveClones = new LiveClones({ layout, tenants: this.#tenants, locks: this.#locks });
    this.#disks = new TemporaryDisks(layout, config.uids, log, spareCount);
    this.#cgroups = new Cgroups(config, log, () => findEnforcedServer(layout, this.#tenants));
    const { uids } = config;
    this.#networks = new Networks({ isRoot: uids !== null, allowed: config.outboundAllow });
    const networks = this.#networks;
    const [tenants, majors, disks, cgroups] = [this.#tenants, this.#majors, this.#disks, this.#cgroups];
    this.#branchDataParts = { layout, tenants, locks: this.#locks, disks, cgroups };
    this.#privateParts = { layout, tenants, locks: this.#locks, majors, uids, networks };
    const { readyServers } = this;
    this.#serverParts = { layout, uids, tenants, majors, disks, cgroups, networks, readyServers };
    this.#histories = new Histories({ layout, tenants, locks: this.#locks, uids, copies });
    this.#recoveries = new Recoveries(this.#privateParts, this.#histories);
  }

  readonly beginLiveClone: HostCalls['beginLiveClone'] = (clone) => inDiskWords(this.#liveClones.begin(clone));
  readonly finishLiveClone: HostCalls['finishLiveClone'] = (...args) => inDiskWords(this.#liveClones.finish(...args));
  readonly abandonLiveClone: HostCalls['abandonLiveClone'] = (token) => this.#liveClones.abandon(token);
  readonly observeRoom: HostCalls['observeRoom'] = () => this.#room.observe();
  readonly readLog: HostCalls['readLog'] = (ref) => this.#logs.read(ref);
  readonly listExtensions: HostCalls['listExtensions'] = async (major) =>
    (await this.#majors.ready(major)).listExtensions();
  readonly release: Majors['release'] = (major) => this.#majors.release(major);
  readonly openPrivateServer: HostCalls['openPrivateServer'] = (ref) => openPrivateServer(this.#privateParts, ref);
  readonly closePrivateServer: HostCalls['closePrivateServer'] = (...args) =>
    closePrivateServer(this.#privateParts, ...args);
  readonly historyWaitsFor: HostCalls['historyWaitsFor'] = (ref) => this.#histories.waitsFor(ref);
  readonly turnHistory: HostCalls['turnHistory'] = (...args) => this.#histories.turn(...args);
  readonly copyLog: HostCalls['copyLog'] = (...args) => this.#histories.copyUpTo(...args);
  readonly beginBase: HostCalls['beginBase'] = (...args) => inDiskWords(this.#histories.beginBase(...args));
  readonly finishBase: HostCalls['finishBase'] = (...args) => inDiskWords(this.#histories.finishBase(...args));
  readonly abandonBase: HostCalls['abandonBase'] = (...args) => this.#histories.abandonBase(...args);
  readonly beginRecovery: HostCalls['beginRecovery'] = (...args) => inDiskWords(this.#recoveries.begin(...args));
  readonly whyRecoveryEnded: HostCalls['whyRecoveryEnded'] = (...args) => this.#recoveries.whyEnded(...args);
  readonly recoverToEnd: HostCalls['recoverToEnd'] = (...args) => this.#recoveries.toEnd(...args);
  readonly finishRecovery: HostCalls['finishRecovery'] = (...args) => inDiskWords(this.#recoveries.finish(...args));
  readonly abandonRecovery: HostCalls['abandonRecovery'] = (...args) => this.#recoveries.abandon(...args);

  /** Prepares what every start of a major needs (binaries, template), reporting progress in plain words. */
  async prepare(pgVersion: number, progress: (line: string) => void): Promise<void> {
    const { build, template } = await this.#majors.ready(pgVersion, progress);
    void this.#spares.refill(template);
    await removeUnusedBuilds(build, this.#layout);
    await this.#disks.removeStale((projectId, endpointId) => this.#releaseDisk(projectId, endpointId));
    await this.#cgroups.removeStale();
    await removeLeftovers(this.#layout, (data) => stopPostmaster(data, null, { fastMs: 0, immediateMs: 10_000 }));
  }

  limitsProblem(): Promise<LimitsProblem> {
    return this.#cgroups.problem();
  }

  networkFacts(): ReturnType<Networks['facts']> {
    return this.#networks.facts();
  }

  /** Call it when Catnap ends. Computes keep running. */
  async close(): Promise<void> {
    await this.#logs.close();
    await this.#disks.close();
  }

  /** How the limit of temporary files is enforced on this machine. */
  temporaryDisk(): Promise<TemporaryDiskEnforcement> {
    return this.#disks.detect();
  }

  async createBranch(spec: BranchSpec): Promise<BranchReceipt> {
    const { template } = await this.#majors.ready(spec.pgVersion);
    const parts = { layout: this.#layout, tenants: this.#tenants, locks: this.#locks, spares: this.#spares, template };
    return inDiskWords(createBranchDirectory(parts, spec));
  }

  async findSourceServer(spec: BranchSpec): Promise<HostedCompute | null> {
    if (spec.source.kind === 'template' || (await readBranchRecord(dataHome(this.#layout, spec)))) return null;
    return this.findServer({ ...spec, branchId: spec.source.branchId });
  }

  async hasReplica(spec: ComputeSpec): Promise<boolean> {
    const record = await readEndpointRecord(this.#layout.endpoint(spec.projectId, spec.endpointId));
    if (record?.branchId !== spec.branchId) return false;
    return (await readBranchRecord(dataHome(this.#layout, spec)))?.pgVersion === spec.pgVersion;
  }

  async claimReplica(spec: ComputeSpec): Promise<void> {
    await this.#tenants.check(spec);
    await this.#locks.exclusive(endpointLock(spec), async () => {
      const record = await this.#fence(spec, spec.generation);
      if (record?.readOnly) await this.#stopOwn(spec, record);
      // After a move: the record must never say that the old branch's data is the new one's.
      if (record && record.branchId !== spec.branchId) await discard(dataHome(this.#layout, spec), this.#layout);
      const { generation, branchId, adminSecret } = spec;
      const directory = await this.#tenants.ensureEndpoint(spec);
      await writeEndpointRecord(directory, { generation, branchId, adminSecret, readOnly: true });
    });
  }

  async removeSlot(ref: ComputeRef, slot: string): Promise<void> {
    await this.#tenants.check(ref);
    await removeSlotOf(this.#branchDataParts, ref, slot);
  }

  async findServer(ref: BranchRef): Promise<HostedCompute | null> {
    const { projectId, branchId, tenantUid } = ref;
    const endpointId = (await this.#holder({ projectId, branchId, tenantUid }))?.endpointId;
    return endpointId ? this.inspect({ ...ref, endpointId: asEndpointId(endpointId) }) : null;
  }

  removeBranch(ref: BranchRef): Promise<void> {
    return removeBranchData(this.#branchDataParts, ref);
  }

  replaceBranch(ref: BranchRef, by: BranchReplacement): Promise<void> {
    return replaceBranchData(this.#branchDataParts, ref, by);
  }

  async start(spec: ComputeSpec): Promise<HostedCompute | null> {
    await this.#tenants.check(spec);
    return this.#locks.exclusive(endpointLock(spec), async () => {
      const known = await this.#fence(spec, spec.generation);
      const previous = { ...spec, branchId: known?.branchId ?? spec.branchId };
      // A replica works on its own data and does not touch its branch.
      const keys = spec.readOnly ? [] : [branchLock(spec), branchLock(previous)];
      this.#logs.add(spec);
      return this.#locks.exclusiveAll(keys, () => startServer(this.#serverParts, spec, previous));
    });
  }

  async expectClients({ endpointId }: EndpointRef, generation: number): Promise<void> {
    this.readyServers.expect(endpointId, generation);
  }

  async inspect(ref: EndpointRef): Promise<HostedCompute | null> {
    return inspectCompute(this.#layout, ref);
  }

  async reload(spec: ComputeSpec): Promise<void> {
    await this.#tenants.check(spec);
    await this.#locks.exclusive(endpointLock(spec), async () => {
      await this.#fence(spec, spec.generation);
      await reloadServer(this.#serverParts, spec);
    });
  }

  async resize(ref: EndpointRef, generation: number, limits: ComputeLimits): Promise<ResizeOutcome> {
    await this.#tenants.check(ref);
    return resizeCompute({ cgroups: this.#cgroups, layout: this.#layout }, ref, generation, limits);
  }

  sample(refs: readonly EndpointRef[]): Promise<ComputeSample[]> {
    return sampleComputes({ cgroups: this.#cgroups, layout: this.#layout }, refs);
  }

  async checkSettings(pgVersion: number, settings: Readonly<Record<string, string>>): Promise<string | null> {
    const { build, template } = await this.#majors.ready(pgVersion);
    return checkSettings(join(build.bin, 'postgres'), template.dataDirectory, settings);
  }

  async forgetFirstSecret(ref: EndpointRef): Promise<void> {
    const record = await readEndpointRecord(this.#layout.endpoint(ref.projectId, ref.endpointId));
    if (record) await removeFirstSecret(this.#layout.branch(ref.projectId, record.branchId));
  }

  async stop(ref: EndpointRef, generation: number): Promise<string | null> {
    await this.#tenants.check(ref);
    return this.#locks.exclusive(endpointLock(ref), async () => {
      const record = await this.#fence(ref, generation);
      if (!record) return null;
      const directory = this.#layout.endpoint(ref.projectId, ref.endpointId);
      if (generation > record.generation) await writeEndpointRecord(directory, { ...record, generation });
      const end = await this.#stopOwn(ref, record, (location) => this.#disks.release(location));
      if (end !== null && !record.readOnly) void this.#catchUp({ ...ref, branchId: record.branchId });
      return end;
    });
  }

  /** Behind the back of whoever stopped the server. */
  async #catchUp(ref: BranchRef): Promise<void> {
    await this.#histories.catchUp(ref).catch((error: unknown) => {
      this.#log(error, 'the end of a log could not be copied into its history yet');
    });
  }

  async removeCompute(ref: EndpointRef): Promise<void> {
    await this.#tenants.check(ref);
    await this.#locks.exclusive(endpointLock(ref), async () => {
      const directory = this.#layout.endpoint(ref.projectId, ref.endpointId);
      const record = await readEndpointRecord(directory);
      if (record) await this.#stopOwn(ref, record);
      await this.#disks.forget(ref.tenantUid);
      await discard(this.#layout.socketDirectory(ref.endpointId), this.#layout);
      await discard(directory, this.#layout);
    });
  }

  async removeProject(ref: TenantRef): Promise<void> {
    await this.#tenants.check(ref);
    for (const endpointId of await idsIn(this.#layout.endpoints(ref.projectId))) {
      await this.removeCompute({ ...ref, endpointId: asEndpointId(endpointId) });
    }
    for (const branchId of await idsIn(this.#layout.branches(ref.projectId))) {
      await this.removeBranch({ ...ref, branchId: asBranchId(branchId) });
    }
    await discard(this.#layout.project(ref.projectId), this.#layout);
    await discard(this.#layout.historiesOf(ref.projectId), this.#layout);
  }

  async list(): Promise<HostedCompute[]> {
    const found = await listComputes(this.#layout, this.#tenants);
    this.#logs.watch(found);
    return found;
  }

  /** Refuses a call older than the newest one seen, before anything is touched. */
  async #fence(ref: EndpointRef, generation: number): Promise<EndpointRecord | null> {
    const record = await readEndpointRecord(this.#layout.endpoint(ref.projectId, ref.endpointId));
    if (record && generation < record.generation) {
      throw new StaleGenerationError(ref.endpointId, generation, record.generation);
    }
    return record;
  }

  async #stopOwn(
    ref: EndpointRef,
    record: EndpointRecord,
    removeDisk = (location: DiskLocation) => this.#disks.detach(location),
  ): Promise<string | null> {
    const { branchId, readOnly } = record;
    const keys = readOnly ? [] : [branchLock({ ...ref, branchId })];
    return this.#locks.exclusiveAll(keys, () => stopServer(this.#serverParts, ref, record, removeDisk));
  }

  #holder(ref: DataRef): Promise<Holder | null> {
    return findHolder(dataDirectoryOf(this.#layout, ref), ref.tenantUid);
  }

  /** A server that died while Catnap was down too cannot release its disk. */
  async #releaseDisk(projectId: string, endpointId: string): Promise<void> {
    const tenantUid = await this.#tenants.recordedUid(projectId);
    const ref = { projectId: asProjectId(projectId), endpointId: asEndpointId(endpointId), tenantUid };
    await this.#locks.exclusive(endpointLock(ref), async () => {
      const compute = await this.inspect(ref);
      if (compute && !compute.process)
        await this.#disks.detach(diskLocationOf(this.#layout, { ...compute, tenantUid }));
    });
  }
}
