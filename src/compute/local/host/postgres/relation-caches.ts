/**
 * Keeps the relation caches of a server over a nap. A session begins by reading what Postgres knows about its own
 * catalogs from the file `pg_internal.init` of its database. Postgres removes these files at every start, because after
 * a crash or a recovery they may not match the catalogs, and the first session then reads the catalogs instead: more
 * than half of the time that a login right after a wake takes. After a clean shutdown they match, since nothing else
 * writes catalogs, so they are put back once the new server has removed them.
 *
 * What is put back is exactly what the server left: its content is compared with hashes that were noted when the server
 * had stopped, so a power failure that has cost the files some of their blocks is noticed. The directories belong to
 * the tenant, so none of them is entered through a link.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { dataDirectory } from '../home/layout.ts';
import { isBeforeRecovery, readControlFile } from './control-file.ts';

interface Note {
  /** Of the shutdown: a server that ran since then has left another. */
  readonly checkpointLsn: string;
  /** The build of the server: another one may mean something else by the same bytes. */
  readonly release: string;
  /** Hash of each file, by its folder. */
  readonly files: Readonly<Record<string, string>>;
}

export interface KeptCaches {
  /** Compares the files with what was noted; call it while the server starts, when the caller has nothing to do. */
  verify(): void;
  /** Call it as soon as the server accepts connections, with the milliseconds since it was last seen not to. */
  putBack(sinceMs: number): void;
  /** Removes what was not put back. */
  close(): void;
}

const fileName = 'pg_internal.init';
/** Copies and backups of Postgres leave out every name that begins like this. */
const asideName = `${fileName}.kept`;
const noteName = 'relation-caches.json';
/** More databases than most computes have; each costs a start a few system calls. */
const filesMax = 16;
const bytesMax = 4_194_304;
/**
 * Only an autovacuum worker could change a catalog before Catnap lets anybody in, and Postgres starts none in the first
 * 100 ms. A file that came back after such a change would be older than its catalog.
 */
const putBackMsMax = 50;

/**
 * Call it when a server has shut down, before anything else may run on its data. `home` is what holds `pgdata`. Without
 * a note the next start is only slower, so a full disk is no reason to fail.
 */
export function noteRelationCaches(home: string, { checkpointLsn, release }: Omit<Note, 'files'>): void {
  if (process.platform !== 'linux') return;
  const files: Record<string, string> = {};
  for (const folder of foldersOf(dataDirectory(home))) {
    if (Object.keys(files).length === filesMax) break;
    const hash = inFolder(dataDirectory(home), folder, (path) => hashOf(join(path, fileName)));
    if (hash !== null) files[folder] = hash;
  }
  const note: Note = { checkpointLsn, release, files };
  try {
    writeFileSync(join(home, `${noteName}.new`), JSON.stringify(note), { mode: 0o600 });
    renameSync(join(home, `${noteName}.new`), join(home, noteName));
  } catch {}
}

/** Null where nothing was noted, or the server that starts on this data will not find what was noted. */
export async function keepRelationCaches(home: string, release: string): Promise<KeptCaches | null> {
  const note = readNote(home);
  if (note === null || note.release !== release) return null;
  const data = dataDirectory(home);
  const control = await readControlFile(data).catch(() => null);
  const isSame = control?.shutDownAsPrimary && control.checkpointLsn === note.checkpointLsn;
  return isSame && !isBeforeRecovery(data) ? setAside(data, note) : null;
}

function setAside(data: string, { files }: Note): KeptCaches {
  const folders = Object.keys(files).filter((folder) => rename(data, folder, fileName, asideName));
  const verified: string[] = [];
  return {
    verify: () => {
      const isAsNoted = (folder: string) =>
        inFolder(data, folder, (path) => hashOf(join(path, asideName))) === files[folder];
      verified.push(...folders.filter(isAsNoted));
    },
    putBack: (sinceMs) => {
      if (sinceMs < putBackMsMax) for (const folder of verified) rename(data, folder, asideName, fileName);
    },
    close: () => {
      for (const folder of folders) inFolder(data, folder, (path) => rmSync(join(path, asideName), { force: true }));
    },
  };
}

function readNote(home: string): Note | null {
  try {
    return JSON.parse(readFileSync(join(home, noteName), 'utf8')) as Note;
  } catch {
    return null;
  }
}

function foldersOf(data: string): string[] {
  const databases = inFolder(data, 'base', (path) => readdirSync(path)) ?? [];
  return ['global', ...databases.filter((name) => /^\d+$/.test(name)).map((name) => `base/${name}`)];
}

function rename(data: string, folder: string, from: string, to: string): boolean {
  const isDone = inFolder(data, folder, (path) => {
    renameSync(join(path, from), join(path, to));
    return true;
  });
  return isDone ?? false;
}

/** Null when the folder is missing or a link, or the work fails. `path` leads to the very folder that was opened. */
function inFolder<T>(data: string, folder: string, work: (path: string) => T): T | null {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const opened: number[] = [];
  try {
    let path = data;
    for (const name of folder.split('/')) {
      opened.push(openSync(join(path, name), flags));
      path = `/proc/self/fd/${opened.at(-1)}`;
    }
    return work(path);
  } catch {
    return null;
  } finally {
    for (const fd of opened) closeSync(fd);
  }
}

/** Throws where there is no such file. */
function hashOf(path: string): string | null {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const facts = fstatSync(fd);
    if (!facts.isFile() || facts.size > bytesMax) return null;
    return createHash('sha256').update(readFileSync(fd)).digest('base64');
  } finally {
    closeSync(fd);
  }
}
