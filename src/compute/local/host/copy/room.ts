/**
 * Full disks: a copy that would fill the disk is refused before it begins, and one that runs out of space reports that
 * in plain words. Servers on a full disk cannot write their WAL and stop, so some space is left for them.
 */
import { CatnapError } from '../../../../lib/errors.ts';
import { lowMark, readSpace } from '../home/room.ts';

/** `bytes` is what the copy itself takes: nothing at first, where it shares blocks. */
export async function requireRoom(folder: string, bytes: number): Promise<void> {
  const space = await readSpace(folder);
  const free = space.free - lowMark(space.total);
  if (bytes <= free) return;
  const taken = bytes === 0 ? 'no copy is made that could grow' : `a full copy takes ${inWords(bytes)}`;
  const facts = `${taken}, and ${inWords(Math.max(0, free))} can be had`;
  throw new CatnapError('disk_full', `the disk is full: ${facts}; nothing was copied`);
}

/** Rewords the error of a copy that ran out of disk space and has removed what it had made. */
export async function inDiskWords<T>(copying: Promise<T>): Promise<T> {
  return copying.catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error;
    throw new CatnapError('disk_full', 'the disk is full: what was copied is removed again', { cause: error });
  });
}

export function inWords(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const step = bytes < 1_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** step;
  return `${step === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[step]}`;
}
