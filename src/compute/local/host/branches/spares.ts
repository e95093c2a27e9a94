/**
 * Copies of the template made ahead of time, so that a new project takes one instead of waiting for it: creating over a
 * thousand files takes 90 to 600 ms depending on what the filesystem did before, giving them to a tenant takes 20. They
 * live beside their template and are removed with it. Only the parent can enter them. After many projects in a short
 * time more copies are kept, since more of them may follow, until there have been none for a while.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BranchReceipt } from '../../../interface/driver.ts';
import { chownTree, syncChanges, syncTree } from '../copy/tree.ts';
import { dataDirectory, unfinishedPrefix } from '../home/layout.ts';
import { removeTree } from '../home/remove-tree.ts';
import { readSpace } from '../home/room.ts';
import { spreadSubdirectories } from '../home/spread.ts';
import type { Template } from '../postgres/template.ts';
import { cloneCluster } from './clone.ts';

/** Lets the server of the project that took one start before the disk is busy again. */
const refillDelayMs = 300;
const abandonedMs = 600_000;

/** How long a project counts when it is estimated how many may come next. */
const usualMemoryMs = 600_000;
const usualRoom = 0.01;

export interface SpareNumbers {
  /** Kept at all times; with 0 there are no spares, and every project is copied on request. */
  readonly usual: number;
  /** Kept after as many projects. */
  readonly most: number;
  readonly memoryMs?: number;
  /** The part of the free disk that copies beyond the usual number may take together. */
  readonly room?: number;
}

export class Spares {
  readonly #numbers: Required<SpareNumbers>;
  readonly #refilling = new Set<string>();
  /** For each folder: when projects were made of late. */
  readonly #asked = new Map<string, number[]>();
  readonly #trimming = new Map<string, NodeJS.Timeout>();
  /** The uid that the next project will probably have. */
  #nextOwner: number | null = null;
  /** What a copy takes of the disk; 0 before the first one is made, and where it shares its blocks. */
  #bytesOfOne = 0;

  constructor(numbers: SpareNumbers) {
    this.#numbers = { memoryMs: usualMemoryMs, room: usualRoom, ...numbers };
  }

  /** Moves a spare to `target` and gives it to `owner`; null when there is none. */
  async take(template: Template, target: string, owner: number | null): Promise<BranchReceipt | null> {
    if (this.#numbers.usual === 0) return null;
    const started = performance.now();
    const folder = folderOf(template);
    this.#asked.set(folder, [...this.#recent(folder), started]);
    if (owner !== null) this.#nextOwner = Math.max(this.#nextOwner ?? 0, owner + 1);
    const names = finished(folder);
    for (const name of [...names.filter((one) => ownerOf(one) === owner), ...names]) {
      const receipt = claim(join(folder, name), target);
      if (receipt === null) continue;
      if (owner !== null && ownerOf(name) !== owner) await chownTree(target, owner);
      setTimeout(() => void this.refill(template), refillDelayMs).unref();
      return { ...receipt, durationMs: Math.round(performance.now() - started) };
    }
    void this.refill(template);
    return null;
  }

  /** Runs in the background, one copy at a time; a failure is retried with the next project. */
  async refill(template: Template): Promise<void> {
    const folder = folderOf(template);
    if (this.#numbers.usual === 0 || this.#refilling.has(folder)) return;
    this.#refilling.add(folder);
    try {
      const isNew = (await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined;
      if (isNew) await spreadSubdirectories(folder);
      await removeAbandoned(folder);
      await this.#adjust(template, folder);
    } catch {
      // A full disk, or a template that was just replaced: projects are then copied on request.
    } finally {
      this.#refilling.delete(folder);
    }
  }

  async #adjust(template: Template, folder: string): Promise<void> {
    for (;;) {
      const names = finished(folder);
      const [surplus] = names;
      const wanted = await this.#wanted(folder);
      if (names.length < wanted) {
        const { bytes, bytesShared } = await makeSpare(template, folder, this.#ownerOfNext(names));
        this.#bytesOfOne = bytes - bytesShared;
      } else if (surplus !== undefined && names.length > wanted) await removeSpare(folder, surplus);
      else break;
    }
    if (finished(folder).length > this.#numbers.usual) this.#trimLater(template, folder);
  }

  /** Projects get their uids one after the other, so a copy can be given to a coming one while nobody waits. */
  #ownerOfNext(names: readonly string[]): number | null {
    if (this.#nextOwner === null) return null;
    const taken = new Set(names.map(ownerOf));
    let owner = this.#nextOwner;
    while (taken.has(owner)) owner++;
    return owner;
  }

  async #wanted(folder: string): Promise<number> {
    const { usual, most, room } = this.#numbers;
    const { free } = await readSpace(folder);
    const roomFor = this.#bytesOfOne === 0 ? most : Math.floor((free * room) / this.#bytesOfOne);
    return Math.max(usual, Math.min(most, roomFor, this.#recent(folder).length));
  }

  #recent(folder: string): number[] {
    const since = performance.now() - this.#numbers.memoryMs;
    return (this.#asked.get(folder) ?? []).filter((at) => at > since);
  }

  #trimLater(template: Template, folder: string): void {
    clearTimeout(this.#trimming.get(folder));
    const trim = () => void this.refill(template);
    this.#trimming.set(folder, setTimeout(trim, this.#numbers.memoryMs).unref());
  }
}

const folderOf = (template: Template) => join(dirname(template.dataDirectory), 'spares');
const receiptOf = (spare: string) => join(spare, 'receipt.json');

function finished(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith(unfinishedPrefix)) : [];
}

/** From the name of a spare. */
function ownerOf(name: string): number | null {
  const [, uid] = name.split('-');
  return uid === undefined ? null : Number(uid);
}

/** Complete and on disk before it gets its final name. */
async function makeSpare(template: Template, folder: string, owner: number | null): Promise<BranchReceipt> {
  const making = await mkdtemp(join(folder, unfinishedPrefix));
  try {
    const source = { source: template.dataDirectory, sourceOwner: null };
    const receipt = await cloneCluster({ ...source, target: dataDirectory(making), owner });
    await writeFile(receiptOf(making), JSON.stringify(receipt));
    // Where all blocks are the template's, only the receipt was written.
    if (receipt.bytesShared < receipt.bytes) await syncTree(making);
    else await syncChanges(making, [receiptOf(making)]);
    const name = randomBytes(8).toString('hex');
    await rename(making, join(folder, owner === null ? name : `${name}-${owner}`));
    return receipt;
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    throw error;
  }
}

/** Under another name first, so that nobody takes half of it. */
async function removeSpare(folder: string, name: string): Promise<void> {
  const removing = join(folder, `${unfinishedPrefix}${name}`);
  await rename(join(folder, name), removing);
  await removeTree(removing);
}

/**
 * Claims it by a rename, so that only one of two callers gets this spare; the slower one gets null. Synchronous: a
 * client waits, and each trip to another thread takes longer than the call.
 */
function claim(spare: string, target: string): BranchReceipt | null {
  try {
    const receipt = JSON.parse(readFileSync(receiptOf(spare), 'utf8')) as BranchReceipt;
    renameSync(dataDirectory(spare), target);
    rmSync(spare, { recursive: true, force: true });
    return receipt;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // EXDEV is another filesystem: a copy is as fast as moving the spare there.
    if (code === 'ENOENT' || code === 'EXDEV') return null;
    throw error;
  }
}

/** Removes half-made spares that a killed Catnap left behind. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = name.startsWith(unfinishedPrefix) ? await stat(path).catch(() => null) : null;
    if (found && Date.now() - found.mtimeMs > abandonedMs) await rm(path, { recursive: true, force: true });
  }
}
