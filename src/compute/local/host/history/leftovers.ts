/** Removes what a killed Catnap left of histories. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Layout, systemHistoriesName } from '../home/layout.ts';
import { readBranchRecord } from '../home/records.ts';
import { discard, idsIn } from '../home/tenant-directories.ts';

/** Removes histories whose data directory is gone, and base images that were being made. */
export async function removeLostHistories(layout: Layout): Promise<void> {
  for (const projectId of await idsIn(layout.histories)) {
    // Its data is no branch's.
    if (projectId === systemHistoriesName) continue;
    const branches = await idsIn(layout.branches(projectId));
    const records = await Promise.all(branches.map((id) => readBranchRecord(layout.branch(projectId, id))));
    const known = new Set(records.map((record) => record?.past?.historyId));
    for (const id of await idsIn(layout.historiesOf(projectId))) {
      const directory = layout.history(projectId, id);
      if (!known.has(id)) await discard(directory, layout);
      const bases = await readdir(join(directory, 'bases')).catch(() => [] as string[]);
      for (const name of bases.filter((one) => one.startsWith('.')))
        await discard(join(directory, 'bases', name), layout);
    }
  }
}
