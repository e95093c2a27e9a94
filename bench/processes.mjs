/** The processes of a machine as /proc shows them, and what those of one Catnap cost. */
import { readdir, readFile } from 'node:fs/promises';

/** What /proc counts processor time in. */
const ticksPerSecond = 100;

export async function listProcesses() {
  const found = [];
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const words = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).split('\0');
    const fields = (await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')).split(') ').at(-1)?.split(' ') ?? [];
    // Those of children that have ended are in there: a server's short sessions cost something too.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    found.push({ pid: Number(name), words, parent: Number(fields[1]), cpuSeconds: ticks / ticksPerSecond });
  }
  return found;
}

/** All of a Catnap but its computes, each with the name of its part. */
export async function processesOf(catnap) {
  const all = await listProcesses();
  const isServer = ({ words }) => words[0]?.endsWith('/postgres') && words[2]?.includes(`${catnap.home}/system/`);
  const server = all.find(isServer);
  const part = (process) => {
    if (process.pid === catnap.pid) return 'parent';
    // The words of the runtime come before it.
    const entry = process.words.findIndex((word) => word.endsWith('/child.js'));
    if (process.parent === catnap.pid && entry > 0) return process.words[entry + 1];
    if (server !== undefined && (process === server || process.parent === server.pid)) return 'system database';
    return process.parent === catnap.pid ? 'other' : null;
  };
  return all.flatMap((process) => {
    const name = part(process);
    return name === null ? [] : [{ ...process, part: name }];
  });
}

export async function findProxies(parentPid) {
  const all = await listProcesses();
  const found = all.filter(({ words, parent }) => words.includes('proxy') && parent === parentPid);
  if (found.length === 0) throw new Error('the proxy process was not found');
  return found.map(({ pid }) => pid);
}

/** Processor time that the processes have used so far. */
export async function cpuSecondsOf(pids) {
  const all = await listProcesses();
  return all.reduce((sum, { pid, cpuSeconds }) => (pids.includes(pid) ? sum + cpuSeconds : sum), 0);
}

/** Bytes, with each shared page split among those that share it; null where the kernel does not tell. */
export async function proportionalBytes(pid) {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  const kilobytes = /^Pss:\s+(\d+) kB$/m.exec(text)?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
}
