/**
 * `pg_dump` as a WebAssembly program, from the npm package of PGlite's tools, for machines that have none of their own.
 * It talks to a real server: it runs in a thread, and this side copies between the thread and the socket. Its files are
 * read when this module is loaded, because the process that uses it drops its privileges afterwards.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { MessageChannel, Worker } from 'node:worker_threads';
import { runDump } from './wasm-worker.ts';
import type { WireSession } from './wire-session.ts';

interface Program {
  readonly library: string;
  readonly wasm: Buffer;
  /** Newest major of Postgres that it can dump. */
  readonly major: number;
}

const program = load();

/** Null when the package is not installed. */
function load(): Program | null {
  try {
    const library = findLibrary();
    const wasm = readFileSync(library.replace(/pg_dump\.cjs$/, 'pg_dump.wasm'));
    const major = Number(/pg_dump \(PostgreSQL\) (\d+)/.exec(wasm.toString('latin1'))?.[1] ?? 0);
    return { library: readFileSync(library, 'utf8'), wasm, major };
  } catch {
    return null;
  }
}

/** A build has the two files beside itself, and no package; what runs from source has the package. */
function findLibrary(): string {
  const shipped = fileURLToPath(new URL('pg_dump.cjs', import.meta.url));
  return existsSync(shipped) ? shipped : createRequire(import.meta.url).resolve('@electric-sql/pglite-tools/pg_dump');
}

export const wasmMajor = program?.major ?? 0;

/** A whole schema, and nothing else. */
const schemaOnly = ['--schema-only'];

export interface DumpLimits {
  readonly bytesMax: number;
  readonly timeoutMs: number;
}

/** `args` are those of pg_dump, as far as they are not about the connection. */
export async function dumpByWasm(
  { socket, greeting }: WireSession,
  limits: DumpLimits,
  args: readonly string[] = schemaOnly,
): Promise<string> {
  if (program === null) throw new Error('the WebAssembly pg_dump is not installed');
  const { port1: ours, port2: theirs } = new MessageChannel();
  const signal = new SharedArrayBuffer(4);
  const tell = (message: Uint8Array | null) => {
    ours.postMessage(message);
    Atomics.add(new Int32Array(signal), 0, 1);
    Atomics.notify(new Int32Array(signal), 0);
  };
  const input = {
    wasm: program.wasm,
    greeting,
    signal,
    port: theirs,
    bytesMax: limits.bytesMax,
    args,
  };
  // The library uses the name of its own file to find others.
  const text = `const module = { exports: {} }, __filename = '/pg_dump.cjs';
    ((exports, require) => {
${program.library}
})(module.exports, require);
    (${runDump.toString()})(module.exports);`;
  const worker = new Worker(text, {
    eval: true,
    workerData: input,
    transferList: [theirs],
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  try {
    ours.on('message', (bytes: Uint8Array) => socket.write(bytes));
    socket.on('data', tell);
    socket.on('close', () => tell(null));
    return await resultOf(worker, limits.timeoutMs);
  } finally {
    await worker.terminate();
    ours.close();
    socket.destroy();
  }
}

function resultOf(worker: Worker, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the dump took too long')), timeoutMs);
    timer.unref();
    worker.once('message', ({ sql, error }: { sql?: string; error?: string }) => {
      clearTimeout(timer);
      if (sql === undefined) reject(new Error(ownWords(error ?? '')));
      else resolve(sql);
    });
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('pg_dump ended without a result')));
  });
}

/** What pg_dump itself has said, without the names that the library and the thread have for it. */
const ownWords = (text: string) => text.replace(/^pg_dump failed with exit code[\s\S]*?error: /, 'pg_dump: ').trim();
