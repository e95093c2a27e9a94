/** Makes one folder, or uses the existing one. */
import { mkdirSync } from 'node:fs';

/** Not `recursive`: the folders above it must exist, and none may be made by mistake. */
export function makeFolder(path: string, mode?: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
