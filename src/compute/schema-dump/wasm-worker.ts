/**
 * The code of the thread of a WebAssembly `pg_dump`: its calls to read and write are synchronous, so the thread blocks
 * until the socket's owner has an answer. The source text is sent to the thread as it is, so the function may use
 * nothing from outside itself but its arguments.
 */
import type { MessagePort } from 'node:worker_threads';

export interface WorkerInput {
  readonly wasm: Uint8Array;
  readonly greeting: Uint8Array;
  readonly args: readonly string[];
  /** Raised by the other side with each message. */
  readonly signal: SharedArrayBuffer;
  readonly port: MessagePort;
  readonly bytesMax: number;
}

interface DumpLibrary {
  pgDump(options: { pg: object; args: readonly string[] }): Promise<{ text(): Promise<string> }>;
}

export async function runDump(library: DumpLibrary): Promise<void> {
  const threads = process.getBuiltinModule('node:worker_threads');
  const files = process.getBuiltinModule('node:fs');
  const { wasm, greeting, args, signal, port, bytesMax } = threads.workerData as WorkerInput;
  const raised = new Int32Array(signal);
  const readFile = files.readFileSync;
  // The library reads its program from the disk, which this process may no longer be able to do.
  const handed = (path: unknown, ...rest: never[]) =>
    String(path).endsWith('pg_dump.wasm') ? Buffer.from(wasm) : Reflect.apply(readFile, files, [path, ...rest]);
  files.readFileSync = handed as typeof readFile;
  let asked = Buffer.alloc(0);
  let answered = Buffer.alloc(0);
  let received = 0;
  let isStarted = false;

  /** Whether what has been written so far ends a request, so that the thread must wait for an answer. */
  function expectsAnswer(): boolean {
    let expects = false;
    while (asked.length >= 5 && asked.length > asked.readUInt32BE(1)) {
      expects ||= asked[0] === 0x51 || asked[0] === 0x53; // Query, Sync
      asked = asked.subarray(1 + asked.readUInt32BE(1));
    }
    return expects;
  }

  /** Whether the bytes hold "ready for query", which ends every answer. */
  function isReady(bytes: Buffer): boolean {
    answered = Buffer.concat([answered, bytes]);
    let ready = false;
    while (answered.length >= 5 && answered.length > answered.readUInt32BE(1)) {
      ready ||= answered[0] === 0x5a;
      answered = answered.subarray(1 + answered.readUInt32BE(1));
    }
    return ready;
  }

  function waitForAnswer(): Buffer {
    const parts: Buffer[] = [];
    for (;;) {
      const seen = Atomics.load(raised, 0);
      const got = threads.receiveMessageOnPort(port);
      if (got === undefined) {
        Atomics.wait(raised, 0, seen);
        continue;
      }
      if (got.message === null) throw new Error('the server closed the connection');
      const bytes = Buffer.from(got.message as Uint8Array);
      received += bytes.length;
      if (received > bytesMax) throw new Error('the schema is too large');
      parts.push(bytes);
      if (isReady(bytes)) return Buffer.concat(parts);
    }
  }

  const pg = {
    query: async () => ({ rows: [{ search_path: '' }] }),
    exec: async () => undefined,
    execProtocolRawStream: (bytes: Uint8Array, to: { onRawData(bytes: Uint8Array): void }) => {
      if (!isStarted) {
        // The session is logged in already, so the library gets what the server sent then.
        isStarted = true;
        to.onRawData(greeting);
        return;
      }
      const copy = Buffer.from(bytes);
      asked = Buffer.concat([asked, copy]);
      port.postMessage(copy);
      if (expectsAnswer()) to.onRawData(waitForAnswer());
    },
  };
  try {
    const dump = await library.pgDump({ pg, args });
    threads.parentPort?.postMessage({ sql: await dump.text() });
  } catch (error) {
    threads.parentPort?.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
}
