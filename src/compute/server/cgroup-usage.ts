/**
 * What the container around a server has used, as the kernel counts it, read by the server itself: inside a container
 * `/sys/fs/cgroup` is its own control group, in either version. Catnap's login is a superuser, and may read files.
 */
import type { ComputeSample } from '../interface/driver.ts';
import type { Session } from './admin-session.ts';

export type ContainerUsage = Pick<
  ComputeSample,
  | 'cpuSeconds'
  | 'periods'
  | 'throttledPeriods'
  | 'usedBytes'
  | 'cacheBytes'
  | 'workingSetBytes'
  | 'refaultBytes'
  | 'oomKills'
>;

const root = '/sys/fs/cgroup';
const pageBytes = 4_096;
/** Larger than any of these files. */
const fileBytes = 65_536;

const files = {
  cpuStat: 'cpu.stat',
  memoryStat: 'memory.stat',
  memoryEvents: 'memory.events',
  cpuAccount: 'cpuacct/cpuacct.usage',
  olderCpuStat: 'cpu/cpu.stat',
  olderMemoryStat: 'memory/memory.stat',
  oomControl: 'memory/memory.oom_control',
};

/** Null where the server sees no control group. */
export async function readContainerUsage(sql: Session): Promise<ContainerUsage | null> {
  const columns = Object.entries(files).map(
    ([name, path]) => `pg_read_file('${root}/${path}', 0, ${fileBytes}, true) AS "${name}"`,
  );
  const [found] = await sql.unsafe<Record<keyof typeof files, string | null>[]>(`SELECT ${columns.join(', ')}`);
  if (found === undefined) return null;
  return found.memoryStat !== null && found.cpuStat !== null
    ? usageOfVersion2(keyed(found.cpuStat), keyed(found.memoryStat), keyed(found.memoryEvents))
    : usageOfVersion1(found);
}

type Keyed = (name: string) => number;

function usageOfVersion2(cpu: Keyed, memory: Keyed, events: Keyed): ContainerUsage {
  const kernel = ['kernel_stack', 'pagetables', 'percpu', 'sock'].reduce((sum, name) => sum + memory(name), 0);
  return {
    cpuSeconds: cpu('usage_usec') / 1e6,
    periods: cpu('nr_periods'),
    throttledPeriods: cpu('nr_throttled'),
    usedBytes: memory('anon') + memory('shmem') + kernel,
    cacheBytes: memory('file') - memory('shmem'),
    workingSetBytes: memory('active_file'),
    refaultBytes: memory('workingset_refault_file') * pageBytes,
    oomKills: events('oom_kill'),
  };
}

function usageOfVersion1(found: Readonly<Record<keyof typeof files, string | null>>): ContainerUsage | null {
  if (found.cpuAccount === null || found.olderMemoryStat === null) return null;
  const cpu = keyed(found.olderCpuStat);
  const memory = keyed(found.olderMemoryStat);
  return {
    cpuSeconds: Number(found.cpuAccount) / 1e9,
    periods: cpu('nr_periods'),
    throttledPeriods: cpu('nr_throttled'),
    // Shared memory counts as cache here, but cannot be reclaimed.
    usedBytes: memory('total_rss') + memory('total_shmem'),
    cacheBytes: memory('total_cache') - memory('total_shmem'),
    workingSetBytes: memory('total_active_file'),
    refaultBytes: memory('total_workingset_refault_file') * pageBytes,
    oomKills: keyed(found.oomControl)('oom_kill'),
  };
}

/** Lines of `name value`. */
function keyed(text: string | null): Keyed {
  const values = new Map((text ?? '').split('\n').map((line) => line.split(' ') as [string, string]));
  return (name) => Number(values.get(name) ?? 0);
}
