/**
 * What servers leave in the kernel when they are killed. The next start on the same data takes it away; tests remove
 * the data instead, and a few thousand segments later no server starts on the machine any more.
 */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../../src/lib/run-program.ts';

const inMemory = '/dev/shm';

/** Removes the System V segments of servers below this folder that have ended without removing their pid file. */
export async function forgetKilledServers(folder: string): Promise<void> {
  const found = await runProgram('find', [folder, '-name', 'postmaster.pid']).catch(() => '');
  for (const path of found.split('\n').filter((line) => line !== '')) {
    // Its seventh line: the key of the segment, and its id.
    const line = (await readFile(path, 'utf8').catch(() => '')).split('\n')[6] ?? '';
    const id = line.trim().split(/\s+/)[1];
    if (id !== undefined) await runProgram('ipcrm', ['-m', id]).catch(() => undefined);
  }
}

/** The segments that servers of the machine have, or have left, in its shared memory. */
export async function listSharedMemory(folder = inMemory): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => name.startsWith('PostgreSQL.'));
}

/** Removes the segments that are not among the given ones, and that no process has open. */
export async function removeSharedMemory(except: readonly string[], folder = inMemory): Promise<void> {
  const added = (await listSharedMemory(folder)).filter((name) => !except.includes(name));
  if (added.length === 0) return;
  const inUse = new Set<string>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '');
    for (const [name] of maps.matchAll(/\bPostgreSQL\.\d+/g)) inUse.add(name);
  }
  for (const name of added.filter((one) => !inUse.has(one))) await rm(join(folder, name), { force: true });
}
