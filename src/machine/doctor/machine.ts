/** Checks Node, the C library, uids, cgroups and kernel limits. */
import { existsSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { Cgroups } from '../../compute/local/host/cgroups/compute-groups.ts';
import type { Config, ProxyRuntime, Uids } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import { chooseProxyRuntime } from '../proxy-runtime.ts';
import { type Check, fail, ok, warn } from './check.ts';
import type { Running } from './running.ts';

const nodeMin = [20, 19] as const;
const sharedMemoryBytesMin = 64 * 1024 ** 2;
const openFilesMin = 4_096;
/** Number of projects that must fit above `CATNAP_UID_BASE` for the range to be usable. */
const tenantsMin = 1_000;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])) return ok('Node', version);
  return fail('Node', version, `install Node ${nodeMin.join('.')} or newer`);
}

/** Node does as well, only with more work for each byte. */
export async function checkProxyRuntime(wanted: ProxyRuntime, choose = chooseProxyRuntime): Promise<Check> {
  try {
    const { name, why } = await choose(wanted);
    return ok('proxy', `runs on ${name === 'bun' ? 'Bun' : 'Node'}: ${why}`);
  } catch (thrown) {
    return fail('proxy', errorText(thrown), 'install the npm package bun, or set CATNAP_PROXY_RUNTIME to auto or node');
  }
}

export async function checkLibc(maps = '/proc/self/maps'): Promise<Check> {
  const here = `${process.platform} ${process.arch}`;
  if (process.platform !== 'linux') {
    return warn('platform', here, 'Catnap is built for Linux; elsewhere use it to try things out only');
  }
  // The C library that this very process has loaded.
  if (!(await readFile(maps, 'utf8')).includes('ld-musl')) return ok('platform', `${here}, glibc`);
  return fail('platform', `${here}, musl`, 'the Postgres binaries need glibc: use Debian, Ubuntu, Fedora or the like');
}

/** Only root starts servers under uids of their own; inside a container some uids may not exist. */
export async function checkUids(uids: Uids | null, uidMap = '/proc/self/uid_map'): Promise<Check> {
  if (uids === null) {
    const detail = `everything runs as uid ${process.getuid?.() ?? '?'}`;
    return warn('uids', detail, 'start Catnap as root to give each project a uid of its own');
  }
  const last = uids.firstTenant + tenantsMin;
  const range = `${uids.service} to ${last}`;
  if (isMapped(await readFile(uidMap, 'utf8'), uids.service, last)) return ok('uids', `${range} can be used`);
  const advice = 'set CATNAP_UID_BASE to the start of a range that this container maps';
  return fail('uids', `${range} do not exist here`, advice);
}

/** Lines of `/proc/self/uid_map`: first uid inside, first uid outside, how many. */
export function isMapped(uidMap: string, first: number, last: number): boolean {
  return uidMap
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .some(([inside = 0, , count = 0]) => inside <= first && last < inside + count);
}

type HomeConfig = Pick<Config, 'home' | 'uids'>;

/**
 * A process enters a group and leaves it, as a server's would; the group is removed afterwards. A Catnap that runs
 * knows better: a service manager gives its services groups that this shell has not.
 */
export async function checkCgroups(config: HomeConfig, running: Running | null): Promise<Check> {
  if (running?.limitsEnforced === true) return ok('cgroups', 'sizes of computes are enforced, where Catnap is running');
  const elsewhere = { ...config, home: `${config.home} doctor` };
  const problem = await new Cgroups(
    elsewhere,
    () => undefined,
    async () => null,
  ).problem();
  if (problem === null && running?.limitsEnforced === false) {
    return warn('cgroups', 'Catnap is running without enforcing sizes', 'its log says why, soon after its start');
  }
  if (problem === null) return ok('cgroups', 'sizes of computes are enforced');
  const advice = `sizes of computes are not enforced here; ${howToEnforce(config.uids)}`;
  return warn('cgroups', problem, advice);
}

/** Only version 2 lets an ordinary user have a group to divide. */
function howToEnforce(uids: Uids | null): string {
  if (uids !== null) return 'give Catnap control groups that it may divide';
  if (!existsSync('/sys/fs/cgroup/cgroup.controllers')) return 'that takes root on a machine with cgroup v1';
  return '`catnap service install` runs Catnap with a control group that it may divide';
}

/** Parallel queries keep their shared data here. */
export async function checkSharedMemory(folder = '/dev/shm'): Promise<Check> {
  const found = await statfs(folder).catch(() => null);
  if (found === null) return warn('shared memory', `no ${folder}`, `mount a tmpfs on ${folder}`);
  const bytes = found.bsize * found.bavail;
  const detail = `${Math.round(bytes / 1024 ** 2)} MiB free in ${folder}`;
  if (bytes >= sharedMemoryBytesMin) return ok('shared memory', detail);
  return warn('shared memory', detail, 'parallel queries may fail: give the container more with --shm-size');
}

/** Each client of the proxy takes two. */
export async function checkOpenFiles(limits = '/proc/self/limits'): Promise<Check> {
  const text = await readFile(limits, 'utf8').catch(() => '');
  const found = /^Max open files\s+(\S+)/m.exec(text)?.[1];
  if (found === undefined) return warn('open files', 'the limit is not known', 'see that `ulimit -n` is 4096 or more');
  if (found === 'unlimited' || Number(found) >= openFilesMin) return ok('open files', `up to ${found}`);
  return warn('open files', `up to ${found}`, `raise it with \`ulimit -n ${openFilesMin * 16}\` for many clients`);
}
