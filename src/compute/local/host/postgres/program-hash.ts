/** The hash of a program, which is read as a whole only when it is another file than the one that was read before. */
import { createHash } from 'node:crypto';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';

/** By path: what the program is, as the filesystem tells, and the hash that it had. */
const knownHashes = new Map<string, string>();

/**
 * To read the whole program takes longer than anything else of a start, so the hash is noted down with what changes
 * whenever the file does: each write gives it another time of change, which nobody can set.
 */
export async function hashOfProgram(
  path: string,
  noteFile: string | null,
  memory: Map<string, string> = knownHashes,
): Promise<string> {
  const { dev, ino, size, ctimeNs } = await stat(path, { bigint: true });
  const identity = `${dev} ${ino} ${size} ${ctimeNs}`;
  const noted = memory.get(path) ?? (noteFile === null ? '' : await readFile(noteFile, 'utf8').catch(() => ''));
  const known = noted.startsWith(`${identity}\n`) ? noted.slice(identity.length + 1) : '';
  const found = /^[0-9a-f]{64}$/.test(known) ? known : await hashOfFile(path);
  const note = `${identity}\n${found}`;
  memory.set(path, note);
  if (noteFile !== null && note !== noted) await writeNote(noteFile, note);
  return found;
}

async function hashOfFile(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

/** Without it the next start only takes longer. */
async function writeNote(path: string, note: string): Promise<void> {
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, note)
    .then(() => rename(fresh, path))
    .catch(() => rm(fresh, { force: true }));
}
