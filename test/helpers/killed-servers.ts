/**
 * What servers leave in the kernel when they are killed. The next start on the same data takes it away; tests remove
 * the data instead, and a few thousand segments later no server starts on the machine any more.
 */
import { readdir, readFile, rm, stat } from 'node:fs/promises';
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

/**
 * Removes the segments that are not among the given ones, and that no process has open. A server that lives may have
 * one that none of its processes has open just now, so those of a user who runs a server stay.
 */
export async function removeSharedMemory(
  except: readonly string[],
  folder = inMemory,
  usersOfServers = findUsersOfServers,
): Promise<void> {
  const added = (await listSharedMemory(folder)).filter((name) => !except.includes(name));
  if (added.length === 0) return;
  const serving = await usersOfServers();
  const inUse = new Set<string>();
  for (const pid of await listPids()) {
    const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '');
    for (const [name] of maps.matchAll(/\bPostgreSQL\.\d+/g)) inUse.add(name);
  }
  for (const name of added.filter((one) => !inUse.has(one))) {
    const path = join(folder, name);
    if (!serving.has(await ownerOf(path))) await rm(path, { force: true });
  }
}

async function findUsersOfServers(): Promise<ReadonlySet<number>> {
  const users = new Set<number>();
  for (const pid of await listPids()) {
    const command = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
    if (command.trim() === 'postgres') users.add(await ownerOf(`/proc/${pid}`));
  }
  return users;
}

const listPids = async () => (await readdir('/proc')).filter((name) => /^\d+$/.test(name));

/** A number that no user has where there is nothing. */
async function ownerOf(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.uid ?? -1;
}
