/** Removes what a killed Catnap left half made or half removed. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Layout, unfinishedPrefix } from './layout.ts';

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

async function removeAbandoned(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found && Date.now() - found.mtimeMs > abandonedMs) await remove(path);
}

const namesIn = (folder: string) => readdir(folder).catch(() => [] as string[]);
const remove = (path: string) => rm(path, { recursive: true, force: true });
