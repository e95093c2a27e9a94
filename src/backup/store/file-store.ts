/**
 * A store in a folder: another disk, or a mount of another machine. An object appears under its name by a rename, after
 * its bytes are on the disk; what is being written is in the folder `.unfinished`.
 */
import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { link, mkdir, open, readdir, rename, rm, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { hourMs } from '../../lib/clock.ts';
import {
  checkedKey,
  NoSuchObjectError,
  ObjectExistsError,
  type ObjectStore,
  type PutOptions,
  type StoredObject,
  StoreError,
  type StoreTrouble,
} from './object-store.ts';

const unfinished = '.unfinished';
/** No upload of one object takes this long without writing to its file. */
const abandonedMs = hourMs;

const troubles: Readonly<Record<string, StoreTrouble>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EFBIG: 'full',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  ENOTDIR: 'unreachable',
  ENOENT: 'unreachable',
  EIO: 'unreachable',
  ESTALE: 'unreachable',
  ETIMEDOUT: 'unreachable',
  ENOTCONN: 'unreachable',
};

export class FileStore implements ObjectStore {
  readonly url: string;
  readonly #root: string;

  /** `root` must exist: a disk that is not mounted must not be replaced by a new folder on the machine's own. */
  constructor(root: string) {
    this.#root = root;
    this.url = `file://${root}`;
  }

  put(key: string, body: Readable | Uint8Array, options: PutOptions = {}): Promise<StoredObject> {
    return this.#guard(async () => {
      const target = join(this.#root, checkedKey(key));
      await mkdir(join(this.#root, unfinished), { mode: 0o700 }).catch(ignore('EEXIST'));
      const temporary = join(this.#root, unfinished, randomUUID());
      try {
        await writeDurably(temporary, body);
        await this.#place(temporary, target, key, options.ifAbsent ?? false);
      } finally {
        await rm(temporary, { force: true });
      }
      return described(key, await stat(target));
    });
  }

  get(key: string): Promise<Readable> {
    return this.#guard(async () => {
      const file = await open(join(this.#root, checkedKey(key)), 'r').catch(ignore('ENOENT'));
      if (file === undefined) throw await this.#absence(key);
      return file.createReadStream();
    });
  }

  head(key: string): Promise<StoredObject | null> {
    return this.#guard(async () => {
      const found = await stat(join(this.#root, checkedKey(key))).catch(ignore('ENOENT'));
      if (found === undefined) await this.#absence(key);
      return found?.isFile() ? described(key, found) : null;
    });
  }

  /** Throws if the folder itself is gone: that says nothing about what it holds. */
  async #absence(key: string): Promise<NoSuchObjectError> {
    await stat(this.#root);
    return new NoSuchObjectError(key);
  }

  async *list(prefix: string): AsyncIterable<StoredObject> {
    // A folder that is gone would look like an empty store, and everything would be uploaded again, elsewhere.
    await this.#guard(() => stat(this.#root));
    const folder = prefix.includes('/') ? prefix.slice(0, prefix.lastIndexOf('/')) : '';
    for await (const object of this.#walk(folder)) if (object.key.startsWith(prefix)) yield object;
  }

  async *#walk(folder: string): AsyncIterable<StoredObject> {
    const entries = await this.#guard(async () =>
      readdir(join(this.#root, folder), { withFileTypes: true }).catch(ignore('ENOENT')),
    );
    for (const entry of entries ?? []) {
      if (entry.name.startsWith('.')) continue;
      const key = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) yield* this.#walk(key);
      const found = entry.isFile() ? await this.head(key) : null;
      if (found !== null) yield found;
    }
  }

  remove(key: string): Promise<void> {
    return this.#guard(async () => {
      await rm(join(this.#root, checkedKey(key)), { force: true });
      // Folders that are empty now go too; a `put` that runs at the same time makes its own again.
      for (let folder = dirname(key); folder !== '.'; folder = dirname(folder)) {
        const isGone = await rmdir(join(this.#root, folder)).then(
          () => true,
          () => false,
        );
        if (!isGone) return;
      }
    });
  }

  sweep(): Promise<void> {
    return this.#guard(async () => {
      const folder = join(this.#root, unfinished);
      for (const name of (await readdir(folder).catch(ignore('ENOENT'))) ?? []) {
        const found = await stat(join(folder, name)).catch(ignore('ENOENT'));
        if (found && Date.now() - found.mtimeMs > abandonedMs) await rm(join(folder, name), { force: true });
      }
    });
  }

  close(): void {}

  async #place(temporary: string, target: string, key: string, ifAbsent: boolean): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      await stat(this.#root);
      try {
        await mkdir(dirname(target), { recursive: true, mode: 0o700 });
        if (ifAbsent) await link(temporary, target);
        else await rename(temporary, target);
        break;
      } catch (error) {
        if (codeOf(error) === 'EEXIST') throw new ObjectExistsError(key);
        // A `remove` at the same time has taken the empty folder away.
        if (codeOf(error) !== 'ENOENT' || attempt === 5) throw error;
      }
    }
    if (ifAbsent) await unlink(temporary);
    await syncFolder(dirname(target));
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined || error instanceof StoreError) throw error;
      const trouble = troubles[code] ?? 'other';
      throw new StoreError(trouble, `${this.url}: ${advice(trouble)} (${code})`, { cause: error });
    }
  }
}

function advice(trouble: StoreTrouble): string {
  if (trouble === 'full') return 'no space is left; uploads go on by themselves when there is some';
  if (trouble === 'denied') return `uid ${process.getuid?.()} may not read and write there`;
  return trouble === 'unreachable' ? 'the folder is not there, or its disk does not answer' : 'the folder failed';
}

async function writeDurably(path: string, body: Readable | Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await writeFile(file, body);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Without it a rename may be lost with the machine's power. Some network filesystems cannot do it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync().catch(ignore('EINVAL'));
  } finally {
    await folder.close();
  }
}

function described(key: string, { size, mtimeMs, mtime, ino }: Stats): StoredObject {
  return { key, bytes: size, version: `${ino}-${mtimeMs}-${size}`, changedAt: mtime };
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

const ignore = (code: string) => (error: unknown) => {
  if (codeOf(error) !== code) throw error;
  return undefined;
};
