/**
 * The directories of projects: their owners, and which uids may enter. As root, a project's directory belongs to root
 * and to the group of the project's uid, which may pass through and change nothing: what the parent relies on (records,
 * configuration, the names of the data directories) is out of a tenant's reach. Only `pgdata` is the tenant's own.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, statSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Uids } from '../../../../lib/config.ts';
import { makeFolder } from '../../../../lib/make-folder.ts';
import type { ComputeRef, TenantRef } from '../../../interface/driver.ts';
import { dataDirectory, isId, type Layout } from './layout.ts';
import { removeTree } from './remove-tree.ts';

const largestUid = 2_147_483_647;

export class TenantDirectories {
  readonly #layout: Layout;
  readonly #uids: Uids | null;

  constructor(layout: Layout, uids: Uids | null) {
    this.#layout = layout;
    this.#uids = uids;
  }

  /** The uid that the project's servers run as, or null; refuses a uid that is not the project's. */
  async check(ref: TenantRef): Promise<number | null> {
    const uid = ref.tenantUid;
    if (this.#uids === null) {
      if (uid !== null) throw new Error('only a Catnap that runs as root can give a project a uid of its own');
      return null;
    }
    if (!Number.isInteger(uid) || uid === null || uid < this.#uids.firstTenant || uid > largestUid) {
      throw new Error(`not the uid of a project: ${uid}`);
    }
    const recorded = await this.recordedUid(ref.projectId);
    if (recorded !== null && recorded !== uid) {
      throw new Error(`project ${ref.projectId} belongs to uid ${recorded}, not ${uid}`);
    }
    return uid;
  }

  /** The uid that the project's directory was made for; null when there is none. */
  async recordedUid(projectId: string): Promise<number | null> {
    if (this.#uids === null) return null;
    const gid = statSync(this.#layout.project(projectId), { throwIfNoEntry: false })?.gid ?? 0;
    // A Catnap that was killed just after making the directory left it without a tenant's group.
    return gid >= this.#uids.firstTenant ? gid : null;
  }

  async ensureProject(ref: TenantRef): Promise<void> {
    await this.ensure(this.#layout.project(ref.projectId), ref.tenantUid);
    await this.ensure(this.#layout.branches(ref.projectId), ref.tenantUid);
    await this.ensure(this.#layout.endpoints(ref.projectId), ref.tenantUid);
  }

  async ensureEndpoint(ref: ComputeRef): Promise<string> {
    const directory = this.#layout.endpoint(ref.projectId, ref.endpointId);
    await this.ensure(directory, ref.tenantUid);
    return directory;
  }

  async ensure(directory: string, tenantUid: number | null): Promise<void> {
    makeFolder(directory, 0o700);
    if (tenantUid === null) return;
    // Also for an existing directory: an earlier attempt may have been killed in between.
    chownSync(directory, 0, tenantUid);
    chmodSync(directory, 0o710);
  }
}

/** Names in a folder that are ids; a leading dot marks unfinished entries. */
export async function idsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter(isId);
}

/**
 * Removes a directory, after renaming it into a folder that no tenant can enter. A half-removed directory is therefore
 * never visible, and a tenant's process cannot redirect the removal by swapping names.
 */
export async function discard(directory: string, layout: Layout): Promise<void> {
  const resting = join(layout.trash, `${basename(directory)}-${randomBytes(6).toString('hex')}`);
  try {
    await rename(directory, resting);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return;
    // The socket directory of a home with a long path is on another filesystem.
    if (code !== 'EXDEV') throw error;
    await rm(directory, { recursive: true, force: true });
  }
  if (existsSync(dataDirectory(resting))) await removeTree(resting);
  else await rm(resting, { recursive: true, force: true });
}
