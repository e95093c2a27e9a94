/**
 * The disk for a compute's temporary files while it is awake, so that a query that spills too much fails alone
 * (SQLSTATE 53100). The disk is mounted in the endpoint's directory, which the tenant cannot change, and the server's
 * `base/pgsql_tmp` is a link to it: the parent never mounts on a path that a tenant could redirect, and code that
 * copies or removes a data directory cannot stray into the disk. Each start gets an empty disk, new or its own from
 * before a short sleep. Where disks cannot be made, `temp_file_limit` applies, which Postgres enforces for each
 * session.
 */

import {
  chownSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { readdir, realpath, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Uids } from '../../../../lib/config.ts';
import type { ComputeRef } from '../../../interface/driver.ts';
import type { TemporaryDiskEnforcement } from '../../../interface/driver-host.ts';
import type { Layout } from '../home/layout.ts';
import { type DataRef, dataDirectoryOf } from '../home/server-data.ts';
import { discard } from '../home/tenant-directories.ts';
import { makeDiskImage, mountDiskImage, probePrefix, tryDiskImages } from './image.ts';
import { mountsUnder, unmount } from './mounts.ts';
import { type DiskLog, ReleasedDisks } from './released.ts';
import { imageName, pointName, SpareDisks, spareDiskPrefix } from './spares.ts';

export interface DiskLocation {
  /** The endpoint's directory. */
  readonly directory: string;
  /** Data directory of the server that uses the disk. */
  readonly dataDirectory: string;
}

export interface PreparedDisk {
  /** What will limit the server, if `attach` succeeds. */
  readonly enforcement: TemporaryDiskEnforcement;
  /** The disk is already mounted. */
  readonly attached: boolean;
}

const folderName = 'disk';
const linkName = 'pgsql_tmp';
const noDisk: PreparedDisk = { enforcement: 'session', attached: false };

export class TemporaryDisks {
  readonly #layout: Layout;
  readonly #uids: Uids | null;
  readonly #log: DiskLog;
  readonly #spares: SpareDisks;
  readonly #released: ReleasedDisks;
  #detected: Promise<TemporaryDiskEnforcement> | undefined;

  constructor(layout: Layout, uids: Uids | null, log: DiskLog, spareCount = 0) {
    this.#layout = layout;
    this.#spares = new SpareDisks(layout.work, spareCount);
    this.#released = new ReleasedDisks(layout, log);
    this.#uids = uids;
    this.#log = log;
  }

  /** What this machine allows; tried once, and logged once when it is the weaker of the two. */
  detect(): Promise<TemporaryDiskEnforcement> {
    this.#detected ??= this.#detect();
    return this.#detected;
  }

  async #detect(): Promise<TemporaryDiskEnforcement> {
    if (this.#uids === null) return 'session';
    const problem = await tryDiskImages(this.#layout.work);
    if (problem === null) return 'disk';
    this.#log(new Error(problem), 'no disks for temporary files here: their size is limited for each session instead');
    return 'session';
  }

  /**
   * Call it while no server runs on either directory: makes the folder in which a server finds its disk, with a disk if
   * one was ready. The calls in between only change names, and take less time than handing them to another thread.
   */
  async prepare(location: DiskLocation, uid: number | null, bytes: number): Promise<PreparedDisk> {
    // The folder is removed with the disk, so that nothing is found in it after a nap.
    if (isThere(join(location.directory, folderName))) await this.detach(location);
    else await this.unlink(location);
    if (uid === null || (await this.detect()) === 'session') return noDisk;
    let attached = false;
    const enforcement = await this.#orSession(location, async () => {
      const folder = join(realpathSync(location.directory), folderName);
      attached = this.#spares.take(folder, uid, bytes);
      if (!attached) makePoint(folder, uid);
      await this.#link(location.dataDirectory, join(folder, pointName));
    });
    return enforcement === 'disk' ? { enforcement, attached } : noDisk;
  }

  /** May run while the server starts, which has no temporary files yet. Never fails. */
  attach(location: DiskLocation, uid: number, bytes: number): Promise<TemporaryDiskEnforcement> {
    return this.#orSession(location, async () => {
      const folder = join(await realpath(location.directory), folderName);
      await makeDiskImage({ file: join(folder, imageName), bytes, uid });
      await mountDiskImage(join(folder, imageName), join(folder, pointName));
    });
  }

  /** Waking a compute matters more than the better limit: the machine may have run out of loop devices, for example. */
  async #orSession(location: DiskLocation, work: () => Promise<void>): Promise<TemporaryDiskEnforcement> {
    try {
      await work();
      return 'disk';
    } catch (error) {
      this.#log(error, 'a disk for temporary files could not be made; limits apply to each session of this compute');
      await this.detach(location);
      return 'session';
    }
  }

  /** What limits a running server: a start may have had to do without its disk. */
  async inForce(directory: string): Promise<TemporaryDiskEnforcement> {
    return (await mountsUnder(directory)).length > 0 ? 'disk' : 'session';
  }

  /**
   * For a compute that falls asleep: its disk leaves the endpoint's directory now. It is kept for a while, or unmounted
   * and removed behind the back of the caller, which takes longer than the stop of a server.
   */
  async release({ directory, dataDirectory }: DiskLocation): Promise<void> {
    const folder = join(directory, folderName);
    const isGone = this.#spares.keep(folder) || this.#released.take(folder);
    if (!isGone) return this.detach({ directory, dataDirectory });
    await this.unlink({ directory, dataDirectory });
  }

  /** Resolves when no disk of the tenant is left but those of its running servers. */
  async forget(uid: number | null): Promise<void> {
    if (uid !== null) await this.#spares.forget(uid);
    await this.#released.whenGone();
  }

  /** Also clears what an earlier Catnap, or a server that died, left behind. */
  async detach({ directory, dataDirectory }: DiskLocation): Promise<void> {
    for (const point of await mountsUnder(directory)) await unmount(point);
    await discard(join(directory, folderName), this.#layout);
    await this.unlink({ directory, dataDirectory });
  }

  /** Removes the link to this endpoint's disk from a data directory; another endpoint's link stays. */
  async unlink({ directory, dataDirectory }: DiskLocation): Promise<void> {
    const own = isThere(directory) ? realpathSync(directory) : directory;
    await inBase(dataDirectory, async (base) => {
      const path = join(base, linkName);
      if (readLink(path)?.startsWith(`${own}/`)) unlinkSync(path);
    });
  }

  /** Disks whose endpoint may no longer have a server; `release` checks that, and detaches if so. */
  async removeStale(release: (projectId: string, endpointId: string) => Promise<void>): Promise<void> {
    await this.detect();
    const root = await realpath(this.#layout.root);
    for (const point of await mountsUnder(root)) {
      const [, projectId, endpointId] = /^projects\/([^/]+)\/endpoints\/([^/]+)\//.exec(relative(root, point)) ?? [];
      if (projectId !== undefined && endpointId !== undefined) await release(projectId, endpointId);
    }
    for (const folder of [this.#layout.work, this.#layout.trash]) {
      const points = (await mountsUnder(folder)).filter(
        (point) => !this.#spares.owns(point) && !this.#released.owns(point),
      );
      for (const point of points) {
        await unmount(point);
        // A spare disk of a killed Catnap: it is never used again.
        if (point.includes(spareDiskPrefix)) await rm(dirname(point), { recursive: true, force: true });
      }
    }
    // Ours has been tried out by now; others are those of killed Catnaps.
    const probes = (await readdir(this.#layout.work)).filter((name) => name.startsWith(probePrefix));
    for (const name of probes) await rm(join(this.#layout.work, name), { recursive: true, force: true });
  }

  /** When Catnap ends: disks made ahead of time are not needed any more. */
  async close(): Promise<void> {
    await this.#released.whenGone();
    await this.#spares.close();
  }

  async #link(dataDirectory: string, point: string): Promise<void> {
    const found = await inBase(dataDirectory, async (base) => {
      // A directory of an earlier server that had no disk, or another endpoint's link.
      if (isThere(join(base, linkName))) await discard(join(base, linkName), this.#layout);
      symlinkSync(point, join(base, linkName));
    });
    if (!found) throw new Error(`${dataDirectory} has no directory base`);
  }
}

/** The server reads this directory while it starts, when the disk may not be mounted yet. */
function makePoint(folder: string, uid: number): void {
  mkdirSync(folder, { mode: 0o711 });
  mkdirSync(join(folder, pointName), { mode: 0o700 });
  chownSync(join(folder, pointName), uid, uid);
}

/** True for any kind of file, a dangling link included. */
const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function readLink(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** `base` belongs to the tenant and may be a link: the work happens in the directory that was opened and checked. */
async function inBase(dataDirectory: string, work: (base: string) => Promise<void>): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  let fd: number;
  try {
    fd = openSync(join(dataDirectory, 'base'), flags);
  } catch {
    return false;
  }
  try {
    await work(`/proc/self/fd/${fd}`);
    return true;
  } finally {
    closeSync(fd);
  }
}

export function diskLocationOf(layout: Layout, ref: ComputeRef & DataRef): DiskLocation {
  return { directory: layout.endpoint(ref.projectId, ref.endpointId), dataDirectory: dataDirectoryOf(layout, ref) };
}
