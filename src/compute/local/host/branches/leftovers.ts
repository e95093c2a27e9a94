/** Removes copies of branches and replicas that a killed Catnap left half made. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { asEndpointId, asProjectId } from '../../../../lib/ids.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import { discard, idsIn } from '../home/tenant-directories.ts';
import { stopPostmaster } from '../postgres/postmaster.ts';

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
      for (const name of unfinished) {
        // A recovery runs a server there.
        await stopPostmaster(dataDirectory(join(folder, name)), null, { fastMs: 0, immediateMs: 10_000 });
        await discard(join(folder, name), layout);
      }
    }
  }
}

const namesIn = (folder: string) => readdir(folder).catch(() => [] as string[]);
