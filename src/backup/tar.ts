/** A folder as a tar stream, and back. Owners are left out: whoever unpacks it owns it. */
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract, type Pack, pack } from 'tar-stream';

type EntryHeader = Parameters<Pack['entry']>[0];

export interface FolderEntry {
  /** Below the folder. */
  readonly name: string;
  readonly type: 'file' | 'directory';
  readonly mode: number;
  readonly mtime: Date;
  /** 0 for a folder. */
  readonly size: number;
}

/** The folder's contents, without the folder itself, each folder before what is in it, always in the same order. */
export async function listFolder(folder: string, below = ''): Promise<FolderEntry[]> {
  const entries: FolderEntry[] = [];
  for (const entry of (await readdir(join(folder, below))).sort()) {
    const name = below === '' ? entry : `${below}/${entry}`;
    const path = join(folder, name);
    const facts = await lstat(path);
    // Readers of a history on the machine may be in its group; a server wants its data for itself.
    const shared = { name, mode: facts.mode & 0o700, mtime: facts.mtime };
    if (facts.isDirectory()) {
      entries.push({ ...shared, type: 'directory', size: 0 }, ...(await listFolder(folder, name)));
    } else if (facts.isFile()) {
      entries.push({ ...shared, type: 'file', size: facts.size });
    } else if (facts.isSymbolicLink()) {
      throw new Error(`${path} is a link to ${await readlink(path)}; data directories hold files and folders only`);
    }
    // Sockets and the like belong to a server that runs, and mean nothing elsewhere.
  }
  return entries;
}

/** In their order; one that is larger than `bytesMax` is a part of its own. There is always one part. */
export function intoParts(entries: readonly FolderEntry[], bytesMax: number): FolderEntry[][] {
  const parts: FolderEntry[][] = [[]];
  let bytes = 0;
  for (const entry of entries) {
    // A header, and what fills the last block.
    const size = entry.size + 1_024;
    if (bytes > 0 && bytes + size > bytesMax) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(entry);
    bytes += size;
  }
  return parts;
}

/** All of a folder, or some of its entries. Fails if a file becomes shorter while it is read. */
export function packFolder(folder: string, entries?: readonly FolderEntry[]): Readable {
  const packed = pack();
  const write = async () => {
    for (const { size, ...header } of entries ?? (await listFolder(folder))) {
      if (header.type === 'directory') await written(packed, header);
      else await writeFile(packed, { ...header, size }, join(folder, header.name));
    }
  };
  write().then(
    () => packed.finalize(),
    (error: Error) => packed.destroy(error),
  );
  return asReadable(packed);
}

export interface SmallFile {
  /** A path without dots. */
  readonly name: string;
  readonly content: Uint8Array;
}

export function packFiles(files: readonly SmallFile[]): Readable {
  const packed = pack();
  for (const { name, content } of files) packed.entry({ name, mode: 0o600, mtime: new Date(0) }, Buffer.from(content));
  packed.finalize();
  return asReadable(packed);
}

/** The library's streams are not Node's own, which `pipeline` takes but types do not. */
const asReadable = (packed: Pack) => Readable.from(packed, { objectMode: false });

function written(packed: Pack, header: EntryHeader): Promise<void> {
  return new Promise((resolve, reject) => {
    packed.entry(header, (error) => (error ? reject(error) : resolve()));
  });
}

async function writeFile(packed: Pack, header: EntryHeader, path: string): Promise<void> {
  const size = header.size ?? 0;
  await new Promise<void>((resolve, reject) => {
    if (size === 0) return packed.entry(header, '', (error) => (error ? reject(error) : resolve()));
    const entry = packed.entry(header, (error) => (error ? reject(error) : resolve()));
    // No more than the header says, should the file have grown; if it has shrunk, the library fails.
    pipeline(createReadStream(path, { end: size - 1 }), entry).catch(reject);
  });
}

/**
 * Into a folder that exists and has none of these files. Every file is on the disk when it returns, unless the caller
 * sees to that at once for all of them, which is much quicker.
 */
export async function unpackFolder(packed: Readable, folder: string, { flush = true } = {}): Promise<void> {
  const unpacked = extract();
  const folders = new Set(['']);
  const work = (async () => {
    for await (const entry of unpacked) {
      const { name, type, mode = 0o600 } = entry.header;
      const relative = name.replace(/\/$/, '');
      if (relative.split('/').some((part) => part === '' || part === '.' || part === '..')) {
        throw new Error(`the archive holds a path that leads out of it: ${JSON.stringify(name)}`);
      }
      const path = join(folder, relative);
      if (type === 'directory') {
        await mkdir(path, { recursive: true, mode: mode & 0o777 });
        folders.add(relative);
        entry.resume();
      } else if (type === 'file') {
        if (!folders.has(dirname(relative).replace(/^\.$/, ''))) await mkdir(dirname(path), { recursive: true });
        await pipeline(entry, createWriteStream(path, { flags: 'wx', mode: mode & 0o777, flush }));
      } else {
        throw new Error(`the archive holds ${JSON.stringify(name)}, which is neither a file nor a folder`);
      }
    }
  })();
  await Promise.all([pipeline(packed, unpacked), work]);
  if (flush) for (const name of folders) await syncFolder(join(folder, name));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
