/**
 * Control groups of version 2: one group with all controllers. Where a compute may grow, its limit is `memory.high`,
 * which slows the compute down instead of killing, with `memory.max` above it as the hard limit.
 */
import { accessSync, constants, existsSync, writeFileSync } from 'node:fs';
import { readdir, rmdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../../../lib/make-folder.ts';
import {
  type CgroupTree,
  type GroupCounters,
  type GroupLimits,
  hasCode,
  isGone,
  pageBytes,
  periodUs,
  quotaUs,
  readKernelFile,
  readKeyed,
  roomAboveUse,
} from './tree.ts';

/** Room between slowing a compute down and killing a process, for the time that growing takes. */
const wallAboveLimit = 1.25;
const weightOfOneCpu = 100;
/** A compute closer to its limit than this that reclaims without success is stalled. */
const pausedAt = 0.98;

export class CgroupTreeV2 implements CgroupTree {
  readonly version = 2;
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  create(name: string, limits: GroupLimits): string[] {
    // Each time: while no group needs the controllers, a service manager may take them back.
    passOn(dirname(this.#folder));
    makeFolder(this.#folder);
    passOn(this.#folder);
    // Processes outside the tree compete with the tree as a whole, so its weight is the machine's number of cores.
    writeFileSync(join(this.#folder, 'cpu.weight'), String(weight(availableParallelism())));
    const folder = join(this.#folder, name);
    makeFolder(folder);
    const write = (file: string, value: string) => writeFileSync(join(folder, file), value);
    write('cpu.max', cpuMax(limits.cpus));
    const memory = memoryLines(limits.memoryBytes, limits.mayGrow);
    write('memory.max', memory.max);
    write('memory.high', memory.high);
    write('pids.max', String(limits.processes));
    return [join(folder, 'cgroup.procs')];
  }

  async setCpus(name: string, cpus: number | null): Promise<void> {
    const file = (key: string) => join(this.#folder, name, key);
    const setBurst = (us: number) =>
      writeFile(file('cpu.max.burst'), String(us)).catch((error: unknown) => {
        // Kernels before 5.14 have no such file, and it cannot be created.
        if (!hasCode(error, 'ENOENT', 'EACCES', 'EPERM')) throw error;
      });
    await setBurst(0);
    await writeFile(file('cpu.max'), cpuMax(cpus));
    if (cpus !== null) await setBurst(quotaUs(cpus));
  }

  async setLimits(name: string, limits: GroupLimits): Promise<boolean> {
    const write = (file: string, value: string) => writeFile(join(this.#folder, name, file), value);
    await this.setCpus(name, limits.cpus);
    await write('cpu.weight', String(weight(limits.cpus ?? 1)));
    await write('pids.max', String(limits.processes));
    const stat = readKeyed(readKernelFile(join(this.#folder, name, 'memory.stat')) ?? '');
    // The kernel would accept a limit below what is in use, and kill until it fits.
    const needed = Math.ceil(usedBytes(stat) * roomAboveUse);
    const memory = memoryLines(Math.max(limits.memoryBytes, needed), limits.mayGrow);
    await write('memory.max', memory.max);
    await write('memory.high', memory.high);
    return needed <= limits.memoryBytes;
  }

  read(name: string): GroupCounters | null {
    const of = (file: string) => readKernelFile(join(this.#folder, name, file));
    const [cpuStat, cpu, memoryStat, events] = [of('cpu.stat'), of('cpu.max'), of('memory.stat'), of('memory.events')];
    const [current, max, high] = [of('memory.current'), of('memory.max'), of('memory.high')];
    if (cpuStat === null || cpu === null || memoryStat === null || events === null) return null;
    const cpuKeys = readKeyed(cpuStat);
    const stat = readKeyed(memoryStat);
    const limit = high === null || high.trim() === 'max' ? bytesOf(max) : bytesOf(high);
    const isHeld = high !== null && high.trim() !== 'max';
    return {
      cpuSeconds: cpuKeys('usage_usec') / 1e6,
      periods: cpuKeys('nr_periods'),
      throttledPeriods: cpuKeys('nr_throttled'),
      usedBytes: usedBytes(stat),
      cacheBytes: stat('file') - stat('shmem'),
      workingSetBytes: stat('active_file'),
      refaultBytes: stat('workingset_refault_file') * pageBytes,
      oomKills: readKeyed(events)('oom_kill'),
      isPaused: isHeld && usedBytes(stat) >= limit * pausedAt && Number(current) >= limit * pausedAt,
      cpus: cpus(cpu),
      memoryLimitBytes: limit,
      waitsAtLimit: isHeld,
    };
  }

  has(name: string): boolean {
    return existsSync(join(this.#folder, name));
  }

  async remove(name: string): Promise<boolean> {
    try {
      await rmdir(join(this.#folder, name));
      // The tree itself is removed with its last group.
      await rmdir(this.#folder).catch(() => undefined);
      return true;
    } catch (error) {
      if (hasCode(error, 'EBUSY', 'ENOTEMPTY')) return false;
      if (isGone(error)) return true;
      throw error;
    }
  }

  async names(): Promise<string[]> {
    const entries = await readdir(this.#folder, { withFileTypes: true }).catch(() => []);
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  }
}

const controllers = ['cpu', 'memory', 'pids'];

/** The controllers that computes need and that a group lacks, or does not pass on. */
export function missingControllers(group: string, file: 'cgroup.controllers' | 'cgroup.subtree_control'): string[] {
  const found = (readKernelFile(join(group, file)) ?? '').split(/\s+/);
  return controllers.filter((controller) => !found.includes(controller));
}

/** Throws where no group can be made, or none with limits. */
export function passOn(group: string): void {
  accessSync(group, constants.W_OK);
  if (missingControllers(group, 'cgroup.subtree_control').length === 0) return;
  writeFileSync(join(group, 'cgroup.subtree_control'), controllers.map((controller) => `+${controller}`).join(' '));
}

const cpuMax = (cores: number | null) => `${cores === null ? 'max' : quotaUs(cores)} ${periodUs}`;
const weight = (cores: number) => Math.min(10_000, Math.max(1, Math.round(cores * weightOfOneCpu)));
const bytesOf = (text: string | null) =>
  text === null || text.trim() === 'max' ? Number.MAX_SAFE_INTEGER : Number(text);

function cpus(text: string): number | null {
  const [quota, period] = text.trim().split(' ');
  return quota === 'max' ? null : Number(quota) / Number(period);
}

function memoryLines(bytes: number, mayGrow: boolean): { max: string; high: string } {
  return mayGrow
    ? { max: String(Math.round(bytes * wallAboveLimit)), high: String(Math.round(bytes)) }
    : { max: String(Math.round(bytes)), high: 'max' };
}

/** Anonymous and shared memory, and what the kernel needs to manage it. */
const usedBytes = (stat: (name: string) => number) =>
  stat('anon') + stat('shmem') + stat('kernel_stack') + stat('pagetables') + stat('percpu') + stat('sock');
