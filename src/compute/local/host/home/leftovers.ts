/** Removes what a killed Catnap left half made or half removed. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asEndpointId, asProjectId } from '../../../../lib/ids.ts';
import { type Layout, unfinishedPrefix } from './layout.ts';
import { discard, idsIn } from './tenant-directories.ts';

/** Nothing takes this long to make; anything younger may still be in progress. */
const abandonedMs = 3_600_000;

export async function removeLeftovers(layout: Layout): Promise<void> {
  for (const name of await namesIn(layout.trash)) await remove(join(layout.trash, name));
  for (const name of await namesIn(layout.work)) await removeAbandoned(join(layout.work, name));
  for (const folder of [layout.builds, layout.templates]) {
    for (const major of await namesIn(folder)) {
      const names = await namesIn(join(folder, major));
      const unfinished = names.filter((name) => name.startsWith(unfinishedPrefix));
      for (const name of unfinished) await removeAbandoned(join(folder, major, name));
    }
  }
}

/**
 * Removes unfinished copies of branches and for replicas. Call it before this process serves any child: only this
 * process makes copies, so those found by then were begun by a process that is dead.
 */
export async function removeUnfinishedCopies(layout: Layout): Promise<void> {
  for (const project of await idsIn(layout.projects)) {
    const projectId = asProjectId(project);
    const endpoints = (await idsIn(layout.endpoints(projectId))).map(asEndpointId);
    const folders = [layout.branches(projectId), ...endpoints.map((id) => layout.endpoint(projectId, id))];
    for (const folder of folders) {
      const unfinished = (await namesIn(folder)).filter((name) => name.startsWith('.'));
      for (const name of unfinished) await discard(join(folder, name), layout);
    }
  }
}

async function removeAbandoned(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found && Date.now() - found.mtimeMs > abandonedMs) await remove(path);
}

const namesIn = (folder: string) => readdir(folder).catch(() => [] as string[]);
const remove = (path: string) => rm(path, { recursive: true, force: true });
