/**
 * The privileged half of the local driver: it alone touches directories and processes of tenants, and runs in the
 * parent process (as root when Catnap was started by root). It takes ids, never paths, runs no SQL, and does one
 * thing at a time for an endpoint and for a branch.
 */
import { join } from 'node:path';
import type { Config } from '../../config.ts';
import { asBranchId, asEndpointId, asProjectId, type BranchId, type EndpointId, type ProjectId } from '../../ids.ts';
import type { BranchReceipt, BranchRef, BranchSpec, ComputeRef, ComputeSpec, TenantRef } from '../driver.ts';
import { StaleGenerationError } from '../driver.ts';
import { createBranchDirectory } from './branch-directory.ts';
import { type Build, ensureBuild, removeUnusedBuilds } from './builds.ts';
import { KeyedLock } from './keyed-lock.ts';
import { dataDirectory, type Layout, socketFile } from './layout.ts';
import { removeLeftovers } from './leftovers.ts';
import { findPostmaster, type Postmaster, startPostmaster, stopPostmaster } from './postmaster.ts';
import { commandLineSetting } from './process-info.ts';
import {
  type BranchRecord,
  type EndpointRecord,
  readBranchRecord,
  readEndpointRecord,
  readFirstSecret,
  removeFirstSecret,
  writeEndpointRecord,
} from './records.ts';
import { prepareServerFiles, trimLog, writeServerConfig } from './server-files.ts';
import { checkSettings } from './settings-check.ts';
import { ensureTemplate, type Template } from './template.ts';
import { discard, idsIn, TenantDirectories } from './tenant-directories.ts';

/** What the driver needs to know of an endpoint, running or not. */
export interface HostedCompute {
  readonly endpointId: EndpointId;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  /** The newest generation that the host has seen. */
  readonly seenGeneration: number;
  readonly process: { readonly pid: number; readonly generation: number; readonly ready: boolean } | null;
  readonly socketPath: string;
  readonly adminSecret: string;
  /** Set until the branch's server has taken the project's secret in place of the template's. */
  readonly firstSecret: string | null;
}

/** The host knows by itself which branch an endpoint is on. */
export type EndpointRef = Omit<ComputeRef, 'branchId'>;

export interface ComputeHost {
  prepare(pgVersion: number, progress: (line: string) => void): Promise<void>;
  createBranch(spec: BranchSpec): Promise<BranchReceipt>;
  removeBranch(ref: BranchRef): Promise<void>;
  start(spec: ComputeSpec): Promise<void>;
  /** Null for an endpoint that was never started here. */
  inspect(ref: EndpointRef): Promise<HostedCompute | null>;
  /** Writes the configuration anew and has the server of that generation read it. */
  reload(spec: ComputeSpec): Promise<void>;
  /** Null, or what Postgres says is wrong. */
  checkSettings(pgVersion: number, settings: Readonly<Record<string, string>>): Promise<string | null>;
  /** The server has the project's secret now: forget the template's. */
  forgetFirstSecret(ref: EndpointRef): Promise<void>;
  stop(ref: EndpointRef, generation: number): Promise<void>;
  removeCompute(ref: EndpointRef): Promise<void>;
  removeProject(ref: TenantRef): Promise<void>;
  /** Every endpoint that has a process. */
  list(): Promise<HostedCompute[]>;
}

export type HostConfig = Pick<Config, 'home' | 'uids' | 'pgBin'>;

/** What a server was started as is read from its command line: the process itself is the record. */
interface Holder extends Postmaster {
  readonly endpointId: string | null;
  readonly generation: number;
}

export class LocalHost implements ComputeHost {
  readonly #config: HostConfig;
  readonly #layout: Layout;
  readonly #tenants: TenantDirectories;
  readonly #locks = new KeyedLock();
  readonly #prepared = new Map<number, Promise<{ build: Build; template: Template }>>();

  constructor(config: HostConfig, layout: Layout) {
    this.#config = config;
    this.#layout = layout;
    this.#tenants = new TenantDirectories(layout, config.uids);
  }

  async prepare(pgVersion: number, progress: (line: string) => void): Promise<void> {
    const { build } = await this.#ready(pgVersion, progress);
    await removeUnusedBuilds(build, this.#layout);
    await removeLeftovers(this.#layout);
  }

  async createBranch(spec: BranchSpec): Promise<BranchReceipt> {
    const uid = await this.#tenants.check(spec);
    const { template } = await this.#ready(spec.pgVersion);
    const create = () =>
      createBranchDirectory({ ...{ spec, uid, template }, layout: this.#layout, tenants: this.#tenants });
    return this.#locks.exclusive(branchKey(spec), async () => {
      const existing = await this.#branchRecord(spec);
      if (existing) return existing.receipt;
      if (spec.source.kind === 'template') return create();
      const source = { ...spec, branchId: spec.source.branchId };
      // Before the second lock: it is taken only for a branch that exists, so no two calls can wait for each other.
      if (!(await this.#branchRecord(source))) throw new Error(`branch ${source.branchId} has no data`);
      return this.#locks.shared(branchKey(source), async () => {
        if (await this.#holder(source)) throw new Error(`branch ${source.branchId} is not asleep`);
        return create();
      });
    });
  }

  async removeBranch(ref: BranchRef): Promise<void> {
    await this.#tenants.check(ref);
    await this.#locks.exclusive(branchKey(ref), async () => {
      await stopPostmaster(this.#dataDirectory(ref), ref.tenantUid);
      await discard(this.#layout.branch(ref.projectId, ref.branchId), this.#layout);
    });
  }

  async start(spec: ComputeSpec): Promise<void> {
    await this.#tenants.check(spec);
    await this.#locks.exclusive(endpointKey(spec), async () => {
      const known = await this.#fence(spec, spec.generation);
      const previous = { ...spec, branchId: known?.branchId ?? spec.branchId };
      const keys = [branchKey(spec), branchKey(previous)];
      await this.#locks.exclusiveAll(keys, () => this.#startLocked(spec, previous));
    });
  }

  /** `previous` names the branch that the endpoint was on before, which is mostly the same. */
  async #startLocked(spec: ComputeSpec, previous: ComputeRef): Promise<void> {
    const branch = await this.#branchRecord(spec);
    if (!branch) throw new Error(`branch ${spec.branchId} has no data`);
    if (branch.pgVersion !== spec.pgVersion) {
      throw new Error(`branch ${spec.branchId} is of Postgres ${branch.pgVersion}, not ${spec.pgVersion}`);
    }
    const holder = await this.#holder(spec);
    if (holder && holder.endpointId !== spec.endpointId) {
      throw new Error(`branch ${spec.branchId} is in use by ${holder.endpointId ?? 'another server'}`);
    }
    const { build } = await this.#ready(spec.pgVersion);
    const { generation, branchId, adminSecret } = spec;
    const directory = await this.#tenants.ensureEndpoint(spec);
    await writeEndpointRecord(directory, { generation, branchId, adminSecret });
    if (holder?.generation === generation) return;
    for (const ref of [spec, previous]) {
      const older = await this.#holder(ref);
      if (older?.endpointId === spec.endpointId) await stopPostmaster(this.#dataDirectory(ref), spec.tenantUid);
    }
    const files = await prepareServerFiles({ spec, directory, uids: this.#config.uids, layout: this.#layout });
    await startPostmaster({
      ...{ program: join(build.bin, 'postgres'), dataDirectory: this.#dataDirectory(spec), uid: spec.tenantUid },
      logFile: files.logFile,
      arguments: [
        ...['-c', `config_file=${files.configFile}`],
        ...['-c', `catnap.endpoint=${spec.endpointId}`, '-c', `catnap.generation=${generation}`],
      ],
    });
  }

  async inspect(ref: EndpointRef): Promise<HostedCompute | null> {
    const { projectId, endpointId } = ref;
    const record = await readEndpointRecord(this.#layout.endpoint(projectId, endpointId));
    if (!record) return null;
    const { branchId, generation, adminSecret } = record;
    const holder = await this.#holder({ ...ref, branchId });
    const own = holder?.endpointId === endpointId ? holder : null;
    return {
      ...{ endpointId, projectId, branchId, adminSecret },
      seenGeneration: generation,
      process: own && { pid: own.pid, generation: own.generation, ready: own.ready },
      socketPath: socketFile(this.#layout.socketDirectory(endpointId)),
      firstSecret: await readFirstSecret(this.#layout.branch(projectId, branchId)),
    };
  }

  async reload(spec: ComputeSpec): Promise<void> {
    await this.#tenants.check(spec);
    await this.#locks.exclusive(endpointKey(spec), async () => {
      await this.#fence(spec, spec.generation);
      const holder = await this.#holder(spec);
      if (holder?.endpointId !== spec.endpointId || holder.generation !== spec.generation) {
        throw new Error(`compute ${spec.endpointId} is not running`);
      }
      const directory = await this.#tenants.ensureEndpoint(spec);
      await writeServerConfig({ spec, directory, layout: this.#layout });
      process.kill(holder.pid, 'SIGHUP');
    });
  }

  async checkSettings(pgVersion: number, settings: Readonly<Record<string, string>>): Promise<string | null> {
    const { build, template } = await this.#ready(pgVersion);
    return checkSettings(join(build.bin, 'postgres'), template.dataDirectory, settings);
  }

  async forgetFirstSecret(ref: EndpointRef): Promise<void> {
    const record = await readEndpointRecord(this.#layout.endpoint(ref.projectId, ref.endpointId));
    if (record) await removeFirstSecret(this.#layout.branch(ref.projectId, record.branchId));
  }

  async stop(ref: EndpointRef, generation: number): Promise<void> {
    await this.#tenants.check(ref);
    await this.#locks.exclusive(endpointKey(ref), async () => {
      const record = await this.#fence(ref, generation);
      if (!record) return;
      const directory = this.#layout.endpoint(ref.projectId, ref.endpointId);
      if (generation > record.generation) await writeEndpointRecord(directory, { ...record, generation });
      await this.#stopOwn(ref, record);
    });
  }

  async removeCompute(ref: EndpointRef): Promise<void> {
    await this.#tenants.check(ref);
    await this.#locks.exclusive(endpointKey(ref), async () => {
      const directory = this.#layout.endpoint(ref.projectId, ref.endpointId);
      const record = await readEndpointRecord(directory);
      if (record) await this.#stopOwn(ref, record);
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
  }

  async list(): Promise<HostedCompute[]> {
    const found: HostedCompute[] = [];
    for (const projectId of (await idsIn(this.#layout.projects)).map(asProjectId)) {
      const tenantUid = await this.#tenants.recordedUid(projectId);
      for (const endpointId of (await idsIn(this.#layout.endpoints(projectId))).map(asEndpointId)) {
        const compute = await this.inspect({ projectId, endpointId, tenantUid });
        if (!compute?.process) continue;
        found.push(compute);
        await trimLog(this.#layout.endpoint(projectId, endpointId));
      }
    }
    return found;
  }

  /** Refuses what is older than the newest call seen, before anything is touched. */
  async #fence(ref: EndpointRef, generation: number): Promise<EndpointRecord | null> {
    const record = await readEndpointRecord(this.#layout.endpoint(ref.projectId, ref.endpointId));
    if (record && generation < record.generation) {
      throw new StaleGenerationError(ref.endpointId, generation, record.generation);
    }
    return record;
  }

  async #stopOwn(ref: EndpointRef, record: EndpointRecord): Promise<void> {
    const on = { ...ref, branchId: record.branchId };
    await this.#locks.exclusive(branchKey(on), async () => {
      const holder = await this.#holder(on);
      if (holder?.endpointId === ref.endpointId) await stopPostmaster(this.#dataDirectory(on), ref.tenantUid);
    });
  }

  /** The server that runs on a branch's data, whoever started it. */
  async #holder(ref: BranchRef): Promise<Holder | null> {
    const found = await findPostmaster(this.#dataDirectory(ref), ref.tenantUid);
    if (!found) return null;
    const endpointId = commandLineSetting(found.commandLine, 'catnap.endpoint');
    const generation = Number(commandLineSetting(found.commandLine, 'catnap.generation') ?? 0);
    return { ...found, endpointId, generation };
  }

  #branchRecord(ref: BranchRef): Promise<BranchRecord | null> {
    return readBranchRecord(this.#layout.branch(ref.projectId, ref.branchId));
  }

  #dataDirectory(ref: BranchRef): string {
    return dataDirectory(this.#layout.branch(ref.projectId, ref.branchId));
  }

  /** Binaries and template of a major, made once; a failure is not remembered. */
  #ready(
    pgVersion: number,
    progress: (line: string) => void = () => undefined,
  ): Promise<{ build: Build; template: Template }> {
    const known = this.#prepared.get(pgVersion);
    if (known) return known;
    const making = (async () => {
      const build = await ensureBuild(pgVersion, this.#config, this.#layout, progress);
      const asRoot = this.#config.uids !== null;
      return { build, template: await ensureTemplate(build, this.#layout, asRoot, progress) };
    })();
    this.#prepared.set(pgVersion, making);
    making.catch(() => this.#prepared.delete(pgVersion));
    return making;
  }
}

const branchKey = (ref: BranchRef) => `branch ${ref.projectId} ${ref.branchId}`;
const endpointKey = (ref: EndpointRef) => `endpoint ${ref.projectId} ${ref.endpointId}`;
