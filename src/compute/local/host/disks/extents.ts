/**
 * Where the blocks of files are, as the filesystem reports it (FIEMAP, which Node cannot call, but `filefrag` of
 * e2fsprogs can). This shows how much of a branch is shared with others, and how fragmented its files are.
 */
import { existsSync, lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../../../../lib/run-program.ts';

const programs = ['/usr/sbin/filefrag', '/sbin/filefrag', '/usr/bin/filefrag'];
/** Arguments are limited to 128 kB each and 2 MB together; a path is some 200 bytes. */
const filesAtOnce = 1_000;

/** First byte on the disk, and the one after the last. */
export type Range = readonly [from: number, to: number];

export interface Extents {
  /** Bytes that have blocks; holes have none. */
  readonly bytes: number;
  readonly shared: readonly Range[];
  readonly sharedBytes: number;
  /** Pieces of the most fragmented file. */
  readonly piecesMax: number;
}

/**
 * Extents of all plain files under a directory; null where the program is missing. A file with several names counts
 * once, and one that has a name elsewhere too takes nothing here.
 */
export async function measureExtents(directory: string): Promise<Extents | null> {
  const program = programs.find((path) => existsSync(path));
  if (program === undefined) return null;
  const files = await filesOf(directory);
  const found: Extents[] = [];
  for (let at = 0; at < files.length; at += filesAtOnce) {
    // A file that a server has just removed makes the program fail, after it has printed the others.
    const script = '"$0" -v "$@" 2>/dev/null || true';
    const args = ['-c', script, program, ...files.slice(at, at + filesAtOnce)];
    found.push(parseExtents(await runProgram('sh', args)));
  }
  return found.reduce(together, { bytes: 0, shared: [], sharedBytes: 0, piecesMax: 0 });
}

async function filesOf(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files = new Map<number, { readonly path: string; readonly names: number; readonly nlink: number }>();
  for (const path of paths) {
    // A server may have just removed it. Not awaited one by one, because there are many.
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts) files.set(facts.ino, { path, names: (files.get(facts.ino)?.names ?? 0) + 1, nlink: facts.nlink });
  }
  return [...files.values()].filter(({ names, nlink }) => names >= nlink).map(({ path }) => path);
}

export function parseExtents(text: string): Extents {
  let blockBytes = 4_096;
  let [bytes, sharedBytes, piecesMax] = [0, 0, 0];
  const shared: Range[] = [];
  for (const line of text.split('\n')) {
    const size = /\(\d+ blocks? of (\d+) bytes\)$/.exec(line);
    if (size) blockBytes = Number(size[1]);
    const pieces = /: (\d+) extents? found$/.exec(line);
    if (pieces) piecesMax = Math.max(piecesMax, Number(pieces[1]));
    const extent = /^\s*\d+:\s*\d+\.\.\s*\d+:\s*(\d+)\.\.\s*\d+:\s*(\d+):(.*)$/.exec(line);
    if (!extent) continue;
    const flags = extent[3] ?? '';
    // Data that is stored in the file's own inode has no blocks, and is printed in bytes.
    const unit = /\binline\b/.test(flags) ? 1 : blockBytes;
    const [from, length] = [Number(extent[1]) * unit, Number(extent[2]) * unit];
    bytes += length;
    if (!/\bshared\b/.test(flags)) continue;
    sharedBytes += length;
    shared.push([from, from + length]);
  }
  return { bytes, shared, sharedBytes, piecesMax };
}

/** What the ranges take on the disk, counting each block once. */
export function unionBytes(ranges: readonly Range[]): number {
  let [total, end] = [0, 0];
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    total += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return total;
}

function together(a: Extents, b: Extents): Extents {
  return {
    bytes: a.bytes + b.bytes,
    shared: a.shared.concat(b.shared),
    sharedBytes: a.sharedBytes + b.sharedBytes,
    piecesMax: Math.max(a.piecesMax, b.piecesMax),
  };
}
