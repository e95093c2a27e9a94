/** What a server uses, summed over its processes: for machines without control groups. Linux only. */
import { readFile } from 'node:fs/promises';
import type { GroupCounters } from './tree.ts';

/** The unit of times in /proc; the same on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** Null when there is no such process. Processes that have ended are counted through their parent process. */
export async function readProcessTree(postmaster: number): Promise<GroupCounters | null> {
  const children = await readFile(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').catch(() => '');
  const pids = children
    .split(' ')
    .map(Number)
    .filter((pid) => pid > 0);
  const own = await readProcess(postmaster);
  if (own === null) return null;
  const others = (await Promise.all(pids.map(readProcess))).filter((process) => process !== null);
  const sum = (pick: (process: ProcessUse) => number) => others.reduce((total, process) => total + pick(process), 0);
  return {
    cpuSeconds: own.cpuSeconds + own.endedSeconds + sum((process) => process.cpuSeconds),
    // Each process sees its part of the shared memory: the largest part counts as all of it.
    usedBytes:
      own.ownBytes +
      sum((process) => process.ownBytes) +
      Math.max(own.sharedBytes, ...others.map((p) => p.sharedBytes)),
    periods: 0,
    throttledPeriods: 0,
    cacheBytes: 0,
    workingSetBytes: 0,
    refaultBytes: 0,
    oomKills: 0,
    isPaused: false,
    cpus: null,
    memoryLimitBytes: null,
    waitsAtLimit: false,
  };
}

interface ProcessUse {
  readonly cpuSeconds: number;
  /** CPU time of children that have ended. */
  readonly endedSeconds: number;
  readonly ownBytes: number;
  readonly sharedBytes: number;
}

async function readProcess(pid: number): Promise<ProcessUse | null> {
  const [stat, status] = await Promise.all(
    ['stat', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => null)),
  );
  if (stat == null || status == null) return null;
  // The name, in parentheses, may contain spaces; fields are counted after it: state is 0, utime 11, cstime 14.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const seconds = (first: number) => ((fields[first] ?? 0) + (fields[first + 1] ?? 0)) / ticksPerSecond;
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  return {
    cpuSeconds: seconds(11),
    endedSeconds: seconds(13),
    ownBytes: kilobytes('RssAnon') * 1024,
    sharedBytes: kilobytes('RssShmem') * 1024,
  };
}
