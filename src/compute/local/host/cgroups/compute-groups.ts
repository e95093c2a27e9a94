/**
 * The control groups of this data home's computes: one each, entered before Postgres is executed, removed after it has
 * stopped. Where control groups are not permitted computes run without limits, and whatever reports on them says so.
 */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delay } from '../../../../lib/clock.ts';
import type { Uids } from '../../../../lib/config.ts';
import { errorText } from '../../../../lib/errors.ts';
import type { ComputeLimits } from '../../../../lib/model.ts';
import { programEnvironment } from '../../../../lib/run-program.ts';
import type { ComputeSample, ResizeOutcome } from '../../../interface/driver.ts';
import type { LimitsProblem } from '../../../interface/driver-host.ts';
import type { DiskLog } from '../disks/released.ts';
import { enteringShell } from './entering-shell.ts';
import { openTree } from './locations.ts';
import { type CgroupTree, type GroupLimits, isGone } from './tree.ts';

/** How long a start may use all cores: with a quarter of a core it would take three times as long. */
const startGraceMs = 3_000;
const removeTries = 40;
const removeEveryMsMax = 25;

export class Cgroups {
  readonly #name: string;
  readonly #uids: Uids | null;
  readonly #log: DiskLog;
  readonly #findServer: () => Promise<number | null>;
  #opened: Promise<CgroupTree | { readonly problem: string }> | undefined;
  /** Limits that take effect when the grace period of a start is over. */
  readonly #pending = new Map<string, { readonly timer: NodeJS.Timeout; limits: ComputeLimits }>();

  /** `findServer` returns the pid of any server of this home: an earlier Catnap may have made its group elsewhere. */
  constructor(config: { home: string; uids: Uids | null }, log: DiskLog, findServer: () => Promise<number | null>) {
    this.#name = `catnap-${createHash('sha256').update(config.home).digest('hex').slice(0, 8)}`;
    this.#uids = config.uids;
    this.#log = log;
    this.#findServer = findServer;
  }

  /** Tried once, by entering a group as a server would. */
  async problem(): Promise<LimitsProblem> {
    const tree = await this.#tree();
    return 'problem' in tree ? tree.problem : null;
  }

  #tree(): Promise<CgroupTree | { readonly problem: string }> {
    this.#opened ??= this.#tryOut().catch((error: unknown) => ({ problem: errorText(error) }));
    return this.#opened;
  }

  async #tryOut(): Promise<CgroupTree | { readonly problem: string }> {
    if (process.platform !== 'linux') return { problem: `there are no control groups on ${process.platform}` };
    const tree = openTree(this.#name, await this.#ownGroups());
    if ('problem' in tree) return tree;
    const limits = { cpus: null, memoryBytes: 64 * 1024 ** 2, processes: 8, mayGrow: false };
    const probeName = `probe-${randomBytes(4).toString('hex')}`;
    const files = tree.create(probeName, limits);
    try {
      const groups = await readGroupsInside(files, this.#uids?.firstTenant ?? null);
      return groups.includes(`${this.#name}/${probeName}`) ? tree : { problem: 'a process could not enter a group' };
    } finally {
      await removeGroup(tree, probeName);
    }
  }

  /** The groups that the tree is below: those of Catnap itself, or those that an earlier Catnap used. */
  async #ownGroups(): Promise<string> {
    const pid = await this.#findServer();
    const ofServer = pid === null ? '' : await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
    const [first] = ofServer.split('\n').filter((line) => line.includes(`/${this.#name}/`));
    if (first === undefined) return readFile('/proc/self/cgroup', 'utf8');
    return ofServer.replaceAll(new RegExp(`/${this.#name}/[^/\n]+$`, 'gm'), '').replaceAll(/:$/gm, ':/');
  }

  /** The files by which the next server to start enters its group; null where it runs without a group. */
  async prepare(endpointId: string, limits: ComputeLimits): Promise<readonly string[] | null> {
    const tree = await this.#tree();
    if ('problem' in tree) return null;
    this.#cancelGrace(endpointId);
    try {
      // Counters restart with each start; a group that dying backends are still in is reused as it is.
      if (tree.has(endpointId)) await tree.remove(endpointId);
      return createGroup(tree, endpointId, { ...limits, cpus: null });
    } catch (error) {
      // Waking a compute matters more than limiting it.
      this.#log(error, 'a control group could not be made; this compute runs without limits');
      return null;
    }
  }

  /** Call it when the server has started: its grace period begins now. */
  holdSoon(endpointId: string, limits: ComputeLimits): void {
    const hold = () => {
      this.#pending.delete(endpointId);
      this.#set(endpointId, pending.limits).catch((error) =>
        this.#log(error, 'the limits of a compute could not be set'),
      );
    };
    const pending = { timer: setTimeout(hold, startGraceMs), limits };
    pending.timer.unref();
    this.#pending.set(endpointId, pending);
  }

  async resize(endpointId: string, limits: ComputeLimits): Promise<ResizeOutcome> {
    const pending = this.#pending.get(endpointId);
    // The share of cores that it was started with takes effect by itself; a different one ends the grace period.
    if (pending?.limits.cpus === limits.cpus) {
      pending.limits = limits;
      return this.#set(endpointId, { ...limits, cpus: null });
    }
    this.#cancelGrace(endpointId);
    return this.#set(endpointId, limits);
  }

  async #set(endpointId: string, limits: GroupLimits): Promise<ResizeOutcome> {
    const tree = await this.#tree();
    if ('problem' in tree) return 'not_enforced';
    try {
      return (await tree.setLimits(endpointId, limits)) ? 'applied' : 'postponed';
    } catch (error) {
      if (isGone(error)) return 'not_enforced';
      throw error;
    }
  }

  /** Null for a compute without a group. */
  async read(endpointId: string): Promise<Omit<ComputeSample, 'endpointId' | 'isEnforced'> | null> {
    const tree = await this.#tree();
    return 'problem' in tree ? null : tree.read(endpointId);
  }

  /** Lifts the CPU limit for a stop, which writes everything out and should not be slow. */
  async release(endpointId: string): Promise<void> {
    this.#cancelGrace(endpointId);
    const tree = await this.#tree();
    if ('problem' in tree) return;
    await tree.setCpus(endpointId, null).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  }

  /** Call it when the server is gone. */
  async remove(endpointId: string): Promise<void> {
    this.#cancelGrace(endpointId);
    const tree = await this.#tree();
    if (!('problem' in tree)) await removeGroup(tree, endpointId);
  }

  /** Removes groups whose server died unnoticed; returns how many still contain processes, and stay. */
  async removeStale(): Promise<number> {
    const tree = await this.#tree();
    if ('problem' in tree) return 0;
    let left = 0;
    for (const name of await tree.names()) if (!(await tree.remove(name))) left++;
    return left;
  }

  #cancelGrace(endpointId: string): void {
    clearTimeout(this.#pending.get(endpointId)?.timer);
    this.#pending.delete(endpointId);
  }
}

/** The tree is removed with its last group, which may be happening right now. */
function createGroup(tree: CgroupTree, name: string, limits: GroupLimits): string[] {
  try {
    return tree.create(name, limits);
  } catch (error) {
    if (!isGone(error)) throw error;
    return tree.create(name, limits);
  }
}

/** A process that has ended leaves its group a moment later, mostly within a millisecond. */
async function removeGroup(tree: CgroupTree, name: string): Promise<void> {
  for (let tries = 0; tries < removeTries; tries++) {
    if (await tree.remove(name)) return;
    await delay(Math.min(removeEveryMsMax, 2 ** tries));
  }
}

function readGroupsInside(files: readonly string[], uid: number | null): Promise<string> {
  const fds = files.map((file) => openSync(file, 'w'));
  const [shell = '', ...words] = enteringShell(fds.length, fds.length, ['/bin/cat', '/proc/self/cgroup']);
  return new Promise<string>((resolve, reject) => {
    const child = spawn(shell, words, {
      cwd: '/',
      env: programEnvironment,
      stdio: ['ignore', 'pipe', 'pipe', ...fds],
      ...(uid !== null && { uid, gid: uid }),
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve(output) : reject(new Error(output.trim() || `exit code ${code}`)),
    );
  }).finally(() => {
    for (const fd of fds) closeSync(fd);
  });
}
