/**
 * The logs of servers. Anybody who may log in can make a server write as much as the disk takes (RAISE LOG), so a log
 * that has grown is cut while the server goes on appending to it: its last lines are set aside, the rest is dropped.
 */
import { appendFile, open, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as timer } from 'node:timers/promises';
import type { LogRef } from '../../channel/host-calls.ts';
import type { Layout } from '../home/layout.ts';

export const logName = 'server.log';
const asideName = `${logName}.1`;
const cutBytes = 4 * 1024 * 1024;
const keptBytes = 256 * 1024;
const everyMs = 250;

/** Returns whether the log was cut. Lines of the very moment may be lost with the rest. */
export async function cutLog(directory: string): Promise<boolean> {
  const path = join(directory, logName);
  const { size, end } = await readEnd(path, cutBytes);
  if (size <= cutBytes) return false;
  // Before anything is written: the disk may be full.
  await truncate(path);
  await writeFile(join(directory, asideName), end, { mode: 0o600 });
  const at = new Date().toISOString().replace('T', ' ').replace('Z', ' UTC');
  const text = `the log had grown by ${size} bytes: all but the last ${end.length} were dropped`;
  await appendFile(path, `${at} [${process.pid}] catnap LOG:  ${text}\n`);
  return true;
}

/** The last lines, whole; nothing of a log that does not exist. */
export async function readLog(directory: string, bytes = keptBytes): Promise<string> {
  const { size, end } = await readEnd(join(directory, logName), 0);
  if (size >= bytes) return end.toString('utf8');
  const before = await readEnd(join(directory, asideName), 0);
  return Buffer.concat([before.end, end]).toString('utf8');
}

/** `end` is read only of a file that is larger than `above`, and begins with a whole line. */
async function readEnd(path: string, above: number): Promise<{ readonly size: number; readonly end: Buffer }> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (file === null) return { size: 0, end: Buffer.alloc(0) };
  try {
    const { size } = await file.stat();
    if (size <= above) return { size, end: Buffer.alloc(0) };
    const length = Math.min(size, keptBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    const text = buffer.subarray(0, bytesRead);
    return { size, end: length === size ? text : text.subarray(text.indexOf('\n') + 1) };
  } finally {
    await file.close();
  }
}

/** Looks at the logs of the servers that run, several times a second, for as long as there are any. */
export class LogKeeper {
  readonly #layout: Pick<Layout, 'home' | 'endpoint'>;
  readonly #onError: (error: unknown) => void;
  readonly #stopping = new AbortController();
  #directories: ReadonlySet<string> = new Set();
  #loop: Promise<void> | null = null;

  constructor(layout: Pick<Layout, 'home' | 'endpoint'>, onError: (error: unknown) => void) {
    this.#layout = layout;
    this.#onError = onError;
  }

  /** One that starts now. */
  add(ref: LogRef): void {
    this.#directories = new Set([...this.#directories, this.#directoryOf(ref)]);
    this.#loop ??= this.#look();
  }

  /** All that run. */
  watch(refs: readonly LogRef[]): void {
    this.#directories = new Set(refs.map((ref) => this.#directoryOf(ref)));
    if (refs.length > 0) this.#loop ??= this.#look();
  }

  /** Without the path of the home, which is the operator's business. */
  async read(ref: LogRef): Promise<string> {
    return (await readLog(this.#directoryOf(ref))).replaceAll(`${this.#layout.home}/`, '');
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  #directoryOf({ projectId, endpointId }: LogRef): string {
    return this.#layout.endpoint(projectId, endpointId);
  }

  async #look(): Promise<void> {
    while (this.#directories.size > 0 && !this.#stopping.signal.aborted) {
      for (const directory of this.#directories) await cutLog(directory).catch(this.#onError);
      await timer(everyMs, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => undefined);
    }
    this.#loop = null;
  }
}
