/** Removes what a killed Catnap left half made or half removed. */
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  copyProbePrefix,
  dataDirectory,
  type Layout,
  newClusterPrefix,
  socketFile,
  unfinishedPrefix,
} from './layout.ts';
import { idsIn } from './tenant-directories.ts';

/** Nothing takes this long to make; anything younger may still be in progress. */
const abandonedMs = 3_600_000;

/** `stop` ends a server in a data directory, if there is one: a restore that was killed leaves its server behind. */
export async function removeLeftovers(layout: Layout, stop: (data: string) => Promise<void>): Promise<void> {
  for (const name of await namesIn(layout.trash)) await remove(join(layout.trash, name));
  for (const folder of [layout.root, layout.work]) {
    for (const name of (await namesIn(folder)).filter(isMakerGone)) await remove(join(folder, name));
  }
  for (const name of await namesIn(layout.work)) {
    const path = join(layout.work, name);
    if (await isAbandoned(path)) await stop(dataDirectory(path));
    await removeAbandoned(path);
  }
  for (const name of await namesIn(layout.sockets)) {
    const path = join(layout.sockets, name);
    if (scratchSocket.test(name) && !(await isServed(path))) await removeAbandoned(path);
  }
  for (const folder of [layout.builds, layout.templates]) {
    for (const major of await namesIn(folder)) {
      const names = await namesIn(join(folder, major));
      const unfinished = names.filter((name) => name.startsWith(unfinishedPrefix));
      for (const name of unfinished) await removeAbandoned(join(folder, major, name));
    }
  }
}

/**
 * Removes directories for sockets of computes and branches that are gone: their names tell no owner, so a removal that
 * was killed does not find them again. Call it before this process serves any child, which makes new ones.
 */
export async function removeUnownedSockets(layout: Layout): Promise<void> {
  const owned = await ownedSockets(layout);
  for (const name of await namesIn(layout.sockets)) {
    const path = join(layout.sockets, name);
    const isUnowned = !scratchSocket.test(name) && !owned.has(path);
    if (isUnowned && !(await isServed(path))) await remove(path);
  }
}

async function ownedSockets(layout: Layout): Promise<ReadonlySet<string>> {
  const owned = new Set([layout.systemSocketDirectory, layout.proxySocketDirectory]);
  for (const projectId of await idsIn(layout.projects)) {
    for (const id of await idsIn(layout.endpoints(projectId))) owned.add(layout.socketDirectory(id));
    for (const id of await idsIn(layout.branches(projectId))) owned.add(layout.replicationDirectory(id));
  }
  return owned;
}

async function removeAbandoned(path: string): Promise<void> {
  if (await isAbandoned(path)) await remove(path);
}

async function isAbandoned(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found !== null && Date.now() - found.mtimeMs > abandonedMs;
}

/** These say who makes them, and nobody else can finish them. */
function isMakerGone(name: string): boolean {
  const prefix = [newClusterPrefix, copyProbePrefix].find((known) => name.startsWith(known));
  const pid = prefix === undefined ? 0 : Number.parseInt(name.slice(prefix.length), 10);
  return pid > 0 && !isAlive(pid);
}

/** Of a server that recovers or checks data; the names of all others are longer. */
const scratchSocket = /^x.{6}$/;

async function isServed(directory: string): Promise<boolean> {
  const lock = await readFile(`${socketFile(directory)}.lock`, 'utf8').catch(() => '');
  const pid = Number(lock.split('\n')[0]);
  return pid > 0 && isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

const namesIn = (folder: string) => readdir(folder).catch(() => [] as string[]);
/** A program that the killed one had called may still write there. */
const remove = (path: string) => rm(path, { recursive: true, force: true, maxRetries: 5 });
