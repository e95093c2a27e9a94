/** Control groups of version 1: the same group under each controller; cpu and cpuacct mounted together or apart. */
import { existsSync, writeFileSync } from 'node:fs';
import { readdir, rmdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
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

/** Where the groups of one data home are, by controller. */
export interface ControllerFolders {
  readonly cpu: string;
  readonly cpuacct: string;
  readonly memory: string;
  readonly pids: string;
}

const sharesOfOneCpu = 1_024;

export class CgroupTreeV1 implements CgroupTree {
  readonly version = 1;
  readonly #at: ControllerFolders;
  readonly #folders: readonly string[];

  constructor(at: ControllerFolders) {
    this.#at = at;
    this.#folders = [...new Set(Object.values(at))];
  }

  create(name: string, limits: GroupLimits): string[] {
    for (const folder of this.#folders) makeFolder(folder);
    // Processes outside the tree compete with the tree as a whole, so its weight is the machine's number of cores.
    writeFileSync(join(this.#at.cpu, 'cpu.shares'), String(sharesOfOneCpu * availableParallelism()));
    const folders = this.#folders.map((folder) => join(folder, name));
    for (const folder of folders) makeFolder(folder);
    const write = (folder: string, file: string, value: string | number) =>
      writeFileSync(join(folder, name, file), String(value));
    write(this.#at.cpu, 'cpu.cfs_quota_us', limits.cpus === null ? -1 : quotaUs(limits.cpus));
    write(this.#at.memory, 'memory.limit_in_bytes', limits.memoryBytes);
    write(this.#at.memory, 'memory.oom_control', limits.mayGrow ? 1 : 0);
    write(this.#at.pids, 'pids.max', limits.processes);
    // Not `cgroup.procs`: to move a whole process the kernel stops every fork and exit on the machine and waits for all
    // cores, 6 to 15 ms here. A shell is one thread, and a thread that moves itself waits for nothing.
    return folders.map((folder) => join(folder, 'tasks'));
  }

  async setCpus(name: string, cpus: number | null): Promise<void> {
    const file = (key: string) => join(this.#at.cpu, name, key);
    const burst = file('cpu.cfs_burst_us');
    // A burst above the quota is refused, so it is cleared before the quota shrinks; kernels before 5.14 have none.
    await writeFile(burst, '0').catch(ignoreIfAbsent);
    await writeFile(file('cpu.cfs_period_us'), String(periodUs));
    await writeFile(file('cpu.cfs_quota_us'), cpus === null ? '-1' : String(quotaUs(cpus)));
    if (cpus !== null) await writeFile(burst, String(quotaUs(cpus))).catch(ignoreIfAbsent);
  }

  async setLimits(name: string, limits: GroupLimits): Promise<boolean> {
    await this.setCpus(name, limits.cpus);
    const shares = Math.max(2, Math.round((limits.cpus ?? 1) * sharesOfOneCpu));
    await writeFile(join(this.#at.cpu, name, 'cpu.shares'), String(shares));
    await writeFile(join(this.#at.pids, name, 'pids.max'), String(limits.processes));
    const fits = await this.#setMemory(name, limits.memoryBytes);
    // After the limit: waiting processes continue if there is room now; otherwise one of them is killed.
    await writeFile(join(this.#at.memory, name, 'memory.oom_control'), limits.mayGrow ? '1' : '0');
    return fits;
  }

  async #setMemory(name: string, bytes: number): Promise<boolean> {
    const file = join(this.#at.memory, name, 'memory.limit_in_bytes');
    const stat = readKeyed(readKernelFile(join(this.#at.memory, name, 'memory.stat')) ?? '');
    const needed = Math.ceil(usedBytes(stat) * roomAboveUse);
    try {
      await writeFile(file, String(Math.max(bytes, needed)));
      return needed <= bytes;
    } catch (error) {
      // The kernel could not make room; the old limit stays.
      if (hasCode(error, 'EBUSY')) return false;
      throw error;
    }
  }

  read(name: string): GroupCounters | null {
    const { cpu, cpuacct, memory } = this.#at;
    const of = (folder: string, file: string) => readKernelFile(join(folder, name, file));
    const [usage, cpuStat, quota] = [of(cpuacct, 'cpuacct.usage'), of(cpu, 'cpu.stat'), of(cpu, 'cpu.cfs_quota_us')];
    const [memoryStat, oom] = [of(memory, 'memory.stat'), of(memory, 'memory.oom_control')];
    const limit = of(memory, 'memory.limit_in_bytes');
    if (usage === null || cpuStat === null || memoryStat === null || oom === null) return null;
    const cpuKeys = readKeyed(cpuStat);
    const stat = readKeyed(memoryStat);
    const oomKeys = readKeyed(oom);
    return {
      cpuSeconds: Number(usage) / 1e9,
      periods: cpuKeys('nr_periods'),
      throttledPeriods: cpuKeys('nr_throttled'),
      usedBytes: usedBytes(stat),
      cacheBytes: stat('total_cache') - stat('total_shmem'),
      workingSetBytes: stat('total_active_file'),
      refaultBytes: stat('total_workingset_refault_file') * pageBytes,
      oomKills: oomKeys('oom_kill'),
      isPaused: oomKeys('under_oom') === 1 && oomKeys('oom_kill_disable') === 1,
      cpus: Number(quota) < 0 ? null : Number(quota) / periodUs,
      memoryLimitBytes: Number(limit),
      waitsAtLimit: oomKeys('oom_kill_disable') === 1,
    };
  }

  has(name: string): boolean {
    return this.#folders.some((folder) => existsSync(join(folder, name)));
  }

  async remove(name: string): Promise<boolean> {
    const removed = this.#folders.map((folder) =>
      rmdir(join(folder, name)).then(
        () => true,
        (error: unknown) => {
          if (hasCode(error, 'EBUSY', 'ENOTEMPTY')) return false;
          if (isGone(error)) return true;
          throw error;
        },
      ),
    );
    const isRemoved = (await Promise.all(removed)).every(Boolean);
    // The tree itself is removed with its last group.
    if (isRemoved) await Promise.all(this.#folders.map((folder) => rmdir(folder).catch(() => undefined)));
    return isRemoved;
  }

  async names(): Promise<string[]> {
    const entries = await readdir(this.#at.memory, { withFileTypes: true }).catch(() => []);
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  }
}

/** Shared memory counts as cache here, but cannot be reclaimed. */
const usedBytes = (stat: (name: string) => number) => stat('total_rss') + stat('total_shmem');

function ignoreIfAbsent(error: unknown): void {
  if (!hasCode(error, 'ENOENT', 'EACCES')) throw error;
}
