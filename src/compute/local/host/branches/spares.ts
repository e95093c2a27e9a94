/**
 * Copies of the template made ahead of time, so that a new project takes one instead of waiting for it: creating 1,266
 * files takes 90 to 600 ms depending on what the filesystem did before, giving them to a tenant takes 20. They live
 * beside their template and are removed with it. Only the parent can enter them.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BranchReceipt } from '../../../interface/driver.ts';
import { chownTree, syncTree } from '../copy/tree.ts';
import { dataDirectory, unfinishedPrefix } from '../home/layout.ts';
import type { Template } from '../postgres/template.ts';
import { cloneCluster } from './clone.ts';

/** Lets the server of the project that took one start before the disk is busy again. */
const refillDelayMs = 300;
const abandonedMs = 600_000;

export class Spares {
  readonly #count: number;
  readonly #refilling = new Set<string>();

  /** With a count of 0 there are no spares, and every project is copied on request. */
  constructor(count: number) {
    this.#count = count;
  }

  /** Moves a spare to `target` and gives it to `owner`; null when there is none. */
  async take(template: Template, target: string, owner: number | null): Promise<BranchReceipt | null> {
    if (this.#count === 0) return null;
    const started = performance.now();
    for (const name of await finished(folderOf(template))) {
      const receipt = await claim(join(folderOf(template), name), target);
      if (receipt === null) continue;
      if (owner !== null) await chownTree(target, owner);
      setTimeout(() => void this.refill(template), refillDelayMs).unref();
      return { ...receipt, durationMs: Math.round(performance.now() - started) };
    }
    void this.refill(template);
    return null;
  }

  /** Runs in the background, one copy at a time; a failure is retried with the next project. */
  async refill(template: Template): Promise<void> {
    const folder = folderOf(template);
    if (this.#count === 0 || this.#refilling.has(folder)) return;
    this.#refilling.add(folder);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await removeAbandoned(folder);
      while ((await finished(folder)).length < this.#count) await makeSpare(template, folder);
    } catch {
      // A full disk, or a template that was just replaced: projects are then copied on request.
    } finally {
      this.#refilling.delete(folder);
    }
  }
}

const folderOf = (template: Template) => join(dirname(template.dataDirectory), 'spares');
const receiptOf = (spare: string) => join(spare, 'receipt.json');

async function finished(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(() => [] as string[])).filter((name) => !name.startsWith(unfinishedPrefix));
}

/** Complete and on disk before it gets its final name. */
async function makeSpare(template: Template, folder: string): Promise<void> {
  const making = await mkdtemp(join(folder, unfinishedPrefix));
  try {
    const source = { source: template.dataDirectory, sourceOwner: null };
    const receipt = await cloneCluster({ ...source, target: dataDirectory(making), owner: null });
    await writeFile(receiptOf(making), JSON.stringify(receipt));
    await syncTree(making);
    await rename(making, join(folder, randomBytes(8).toString('hex')));
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    throw error;
  }
}

/** Claims it by a rename, so that only one of two callers gets this spare; the slower one gets null. */
async function claim(spare: string, target: string): Promise<BranchReceipt | null> {
  try {
    const receipt = JSON.parse(await readFile(receiptOf(spare), 'utf8')) as BranchReceipt;
    await rename(dataDirectory(spare), target);
    await rm(spare, { recursive: true, force: true });
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
