/** Makes the data home and its folders with the right owners and modes, and refuses a home that is not ours. */
import { chmod, chown, lstat, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { attachStorage } from '../compute/local/host/disks/storage-image.ts';
import { createLayout, type Layout } from '../compute/local/host/home/layout.ts';
import { spreadSubdirectories } from '../compute/local/host/home/spread.ts';
import { type Config, ConfigError } from '../lib/config.ts';

/** Entries that Catnap makes: a home without projects that has any other entry is refused. */
const folders = 'builds templates projects history s system work trash storage storage.img restore.json ballast'.split(
  ' ',
);

export async function ensureHome(config: Pick<Config, 'home' | 'uids'>): Promise<Layout> {
  const { home, uids } = config;
  if (uids) await refuseHiddenHome(home);
  await makeHome(home, uids ? 0o711 : 0o700);
  await refuseForeignHome(home);
  // As root, the servers, each with a uid of its own, pass through the home but cannot list it.
  await chmod(home, uids ? 0o711 : 0o700);
  const layout = createLayout(home, await attachStorage(home));
  const passable = uids ? 0o711 : 0o700;
  await ensureFolder(layout.builds, 0o755);
  await ensureFolder(layout.templates, 0o700);
  await ensureFolder(layout.projects, passable, { isSpread: true });
  await ensureFolder(layout.histories, uids ? 0o750 : 0o700, { isSpread: true });
  // The child processes read it, to copy it off the machine; no tenant can enter it.
  if (uids) await chown(layout.histories, ownUid(), uids.service);
  await ensureFolder(layout.sockets, passable);
  // The child processes make sockets in it, and when Catnap runs as root they run as another user.
  await ensureFolder(layout.proxySocketDirectory, uids ? 0o770 : 0o700);
  if (uids) await chown(layout.proxySocketDirectory, ownUid(), uids.service);
  await ensureFolder(layout.system, passable);
  await ensureFolder(layout.work, passable);
  await ensureFolder(layout.trash, 0o700);
  return layout;
}

/** The folder alone, for what must be in it before anything else. */
export async function makeHome(home: string, mode: number): Promise<void> {
  await makePath(home, mode).catch((error: NodeJS.ErrnoException) => {
    // The message has a path, perhaps one above the home, but not the setting that it follows from.
    throw new ConfigError('CATNAP_HOME', home, `a directory that is there or can be made (${error.message})`);
  });
}

/** Node's own way goes round for ever in /proc, where a folder is there and what is made in it has none. */
async function makePath(path: string, mode: number): Promise<void> {
  const failure = await mkdir(path, { mode }).then(
    () => null,
    (error: NodeJS.ErrnoException) => error,
  );
  if (failure === null || failure.code === 'EEXIST') return;
  const isThere = await stat(dirname(path)).then(
    () => true,
    () => false,
  );
  if (failure.code !== 'ENOENT' || isThere) throw failure;
  await makePath(dirname(path), mode);
  await makePath(path, mode);
}

/**
 * A folder that exists must be our own directory: the socket folder may be in a shared temporary directory, where any
 * user could have made it first. A link is followed only when it is our own (tests share builds that way).
 */
async function ensureFolder(path: string, mode: number, { isSpread = false } = {}): Promise<void> {
  const isNew = await mkdir(path, { mode }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
      return false;
    },
  );
  if (isNew && isSpread) await spreadSubdirectories(path);
  const link = await lstat(path);
  const target = link.isSymbolicLink() ? await stat(path) : link;
  if (!target.isDirectory() || link.uid !== ownUid() || target.uid !== ownUid()) {
    throw new ConfigError('CATNAP_HOME', path, `a directory owned by uid ${ownUid()}; remove what is there`);
  }
  // The umask limits mkdir's mode, so it is set again.
  if (!link.isSymbolicLink()) await chmod(path, mode);
}

async function refuseForeignHome(home: string): Promise<void> {
  const found = await stat(home);
  if (!found.isDirectory()) throw new ConfigError('CATNAP_HOME', home, 'a directory');
  if (found.uid !== ownUid()) {
    throw new ConfigError(
      'CATNAP_HOME',
      home,
      `a directory owned by the user who starts Catnap (uid ${ownUid()}); this one belongs to uid ${found.uid}`,
    );
  }
  const entries = await readdir(home);
  if (entries.includes('projects') || entries.includes('storage.json')) return;
  const stranger = entries.find((name) => !folders.includes(name) && name !== 'lost+found');
  if (stranger !== undefined) {
    throw new ConfigError(
      'CATNAP_HOME',
      home,
      `an empty directory or a home that Catnap made; this one holds ${stranger}`,
    );
  }
}

/** Postgres servers under other uids must be able to reach the home. */
async function refuseHiddenHome(home: string): Promise<void> {
  for (let path = dirname(home); path !== dirname(path); path = dirname(path)) {
    const found = await stat(path).catch(() => undefined);
    if (found && (found.mode & 0o001) === 0) {
      throw new ConfigError(
        'CATNAP_HOME',
        home,
        `a path that other users may pass through, because servers run under uids of their own; ${path} is closed to them`,
      );
    }
  }
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}
