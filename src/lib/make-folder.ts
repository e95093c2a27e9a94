/** Makes one folder, or takes the one that is there. */
import { mkdirSync } from 'node:fs';

/** Not `recursive`: the folders above it must be there, and none is to be made by mistake. */
export function makeFolder(path: string, mode?: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
