/**
 * The disk that a compute's temporary files live on while it is awake, so that a query that spills too much fails alone
 * (SQLSTATE 53100). The disk is mounted in the endpoint's directory, which the tenant cannot change, and the server's
 * `base/pgsql_tmp` is a link to it: the parent never mounts on a path that a tenant could lead elsewhere, and nobody
 * who copies or removes a data directory can stray into it. Made anew at each start, gone when the compute sleeps.
 * Where disks cannot be had, the bound is `temp_file_limit`, which Postgres keeps for each session.
 */
import { constants } from 'node:fs';
import { chown, mkdir, open, readlink, realpath, rm, symlink, unlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Uids } from '../../config.ts';
import { makeDiskImage, mountDiskImage, tryDiskImages } from './disk-image.ts';
import type { Layout } from './layout.ts';
import { mountsUnder, unmount } from './mounts.ts';
import { discard } from './tenant-directories.ts';

/** `disk`: all sessions together, 53100. `session`: each session for itself, 53400. */
export type TemporaryDiskEnforcement = 'disk' | 'session';

export interface DiskPlace {
  /** The endpoint's. */
  readonly directory: string;
  /** Of the server that the disk is for. */
  readonly dataDirectory: string;
}

export type DiskLog = (error: unknown, message: string) => void;

const imageName = 'temp.img';
const pointName = 'temp';
const linkName = 'pgsql_tmp';

export class TemporaryDisks {
  readonly #layout: Layout;
  readonly #uids: Uids | null;
  readonly #log: DiskLog;
  #detected: Promise<TemporaryDiskEnforcement> | undefined;

  constructor(layout: Layout, uids: Uids | null, log: DiskLog) {
    this.#layout = layout;
    this.#uids = uids;
    this.#log = log;
  }

  /** What this machine allows; tried once, and said once in the log when it is the lesser of the two. */
  detect(): Promise<TemporaryDiskEnforcement> {
    this.#detected ??= this.#detect();
    return this.#detected;
  }

  async #detect(): Promise<TemporaryDiskEnforcement> {
    if (this.#uids === null) return 'session';
    const problem = await tryDiskImages(this.#layout.work);
    if (problem === null) return 'disk';
    this.#log(new Error(problem), 'no disks for temporary files here: their size is bounded for each session instead');
    return 'session';
  }

  /**
   * While no server runs on either directory: makes the place that a server finds its disk in, and tells what will
   * bound it, if `attach` succeeds.
   */
  async prepare(place: DiskPlace, uid: number | null): Promise<TemporaryDiskEnforcement> {
    await this.detach(place);
    if (uid === null || (await this.detect()) === 'session') return 'session';
    return this.#orSession(place, async () => this.#link(place.dataDirectory, await makePoint(place, uid)));
  }

  /** May go on while the server starts, which has no temporary files yet. Never fails. */
  attach(place: DiskPlace, uid: number, bytes: number): Promise<TemporaryDiskEnforcement> {
    const file = join(place.directory, imageName);
    return this.#orSession(place, async () => {
      await makeDiskImage({ file, bytes, uid });
      await mountDiskImage(file, await makePoint(place, uid));
    });
  }

  /** A wake is worth more than the better bound: the machine may have run out of loop devices, say. */
  async #orSession(place: DiskPlace, work: () => Promise<void>): Promise<TemporaryDiskEnforcement> {
    try {
      await work();
      return 'disk';
    } catch (error) {
      this.#log(error, 'a disk for temporary files could not be made; this compute is bounded for each session');
      await this.detach(place);
      return 'session';
    }
  }

  /** What bounds a server that runs: a start may have had to do without its disk. */
  async inForce(directory: string): Promise<TemporaryDiskEnforcement> {
    return (await mountsUnder(directory)).length > 0 ? 'disk' : 'session';
  }

  /** Also for what an earlier Catnap, or a server that died, left behind. */
  async detach({ directory, dataDirectory }: DiskPlace): Promise<void> {
    for (const point of await mountsUnder(directory)) await unmount(point);
    await rm(join(directory, imageName), { force: true });
    await this.unlink({ directory, dataDirectory });
  }

  /** Takes the link to this endpoint's disk out of a data directory; another endpoint's stays. */
  async unlink({ directory, dataDirectory }: DiskPlace): Promise<void> {
    const point = join(await realpath(directory).catch(() => directory), pointName);
    await inBase(dataDirectory, async (base) => {
      const path = join(base, linkName);
      if ((await readlink(path).catch(() => null)) === point) await unlink(path);
    });
  }

  /** Disks whose endpoint may have no server any more; `release` looks, and detaches if so. */
  async removeStale(release: (projectId: string, endpointId: string) => Promise<void>): Promise<void> {
    await this.detect();
    const root = await realpath(this.#layout.root);
    for (const point of await mountsUnder(root)) {
      const [, projectId, endpointId] = /^projects\/([^/]+)\/endpoints\/([^/]+)\//.exec(relative(root, point)) ?? [];
      if (projectId !== undefined && endpointId !== undefined) await release(projectId, endpointId);
    }
    for (const folder of [this.#layout.work, this.#layout.trash]) {
      for (const point of await mountsUnder(folder)) await unmount(point);
    }
  }

  async #link(dataDirectory: string, point: string): Promise<void> {
    const found = await inBase(dataDirectory, async (base) => {
      // A directory of an earlier server that had no disk, or a link of another endpoint's.
      await discard(join(base, linkName), this.#layout);
      await symlink(point, join(base, linkName));
    });
    if (!found) throw new Error(`${dataDirectory} has no directory base`);
  }
}

/** The server looks into it while it starts, when the disk may not be there yet. */
async function makePoint({ directory }: DiskPlace, uid: number): Promise<string> {
  const point = join(await realpath(directory), pointName);
  await mkdir(point, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await chown(point, uid, uid);
  return point;
}

/** `base` belongs to the tenant, who might have put a link there: what was opened and checked is what is worked in. */
async function inBase(dataDirectory: string, work: (base: string) => Promise<void>): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const handle = await open(join(dataDirectory, 'base'), flags).catch(() => null);
  if (!handle) return false;
  try {
    await work(`/proc/self/fd/${handle.fd}`);
    return true;
  } finally {
    await handle.close();
  }
}
