/** How branches are copied on a filesystem: tried out, not guessed from its name. */
import { constants } from 'node:fs';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloneMethod } from '../../../interface/driver-host.ts';
import { copyProbePrefix } from '../home/layout.ts';

const probeBytes = 65_536;

/** Null when the folder is not writable. */
export async function detectCloneMethod(folder: string): Promise<CloneMethod | null> {
  const directory = await mkdtemp(join(folder, `${copyProbePrefix}${process.pid}-`)).catch(() => null);
  if (directory === null) return null;
  try {
    const original = join(directory, 'original');
    await writeFile(original, Buffer.alloc(probeBytes, 1));
    return await copyFile(original, join(directory, 'clone'), constants.COPYFILE_FICLONE_FORCE).then(
      () => 'reflink',
      () => 'copy',
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
