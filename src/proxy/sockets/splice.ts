/**
 * Copies bytes between a client and a compute, both ways, with backpressure, until both sides are closed. It does not
 * parse them. Only when the proxy itself ends the session do the last bytes decide where its own message can go
 * without splitting another one.
 */
import type { ByteStream } from '../protocol/byte-stream.ts';
import { isBetweenMessages, isIdleAfter, lastBytes } from './boundary.ts';
import { onChunks } from './chunks.ts';
import { writerTo } from './straight-writer.ts';

export interface Splice {
  /** Resolves when both sockets are closed; never rejects. */
  readonly done: Promise<void>;
  /** Ends the session with `farewell` as soon as it is outside of a transaction; `terminate` may follow. */
  drain(farewell: Buffer): void;
  /**
   * Ends the session. An idle client gets `farewell` at once, a busy one at the end of its answer. After half of the
   * grace the query is cancelled; a client whose answer still has no end after all of it is closed without a message.
   */
  terminate(farewell: Buffer, graceMs: number): void;
}

export interface SpliceOptions {
  readonly client: ByteStream;
  readonly compute: ByteStream;
  /** Called for every chunk. */
  readonly onClientBytes: () => void;
  /** What was sent to the client is added to it. */
  readonly sent: { bytes: number };
  /** Cancels the compute's current query; may fail. */
  readonly interrupt: () => Promise<void>;
  /** What of a client's chunk may go on to the compute; all of it when left out. */
  readonly admit?: ((chunk: Buffer) => Buffer) | undefined;
}

/** How long a client may keep its own half open after we have closed ours. */
const lingerMs = 5_000;
const nothing = Buffer.alloc(0);

export function splice({ client, compute, onClientBytes, sent, interrupt, admit }: SpliceOptions): Splice {
  let last: Buffer = nothing;
  let farewell: Buffer | null = null;
  /** Said at the end of a transaction, unlike the other one. */
  let farewellWhenIdle: Buffer | null = null;
  /** The client has sent something that the compute has not begun to answer. */
  let isUnanswered = false;
  const timers: NodeJS.Timeout[] = [];
  const later = (ms: number, action: () => void) => timers.push(setTimeout(action, ms));

  const sayFarewell = () => {
    if (farewell === null || !isBetweenMessages(last)) return;
    stopCompute();
    if (client.writable) client.end(farewell);
    farewell = null;
    // A query that sends nothing would not notice that its client is gone, and would go on.
    if (isUnanswered) interrupt().catch(() => {});
    compute.destroy();
  };

  const endIfIdle = () => {
    if (farewellWhenIdle === null || isUnanswered || !isIdleAfter(last)) return;
    farewell = farewellWhenIdle;
    sayFarewell();
  };

  const clientWriter = writerTo(client, () => compute.resume());
  const computeWriter = writerTo(compute, () => client.resume());
  const toCompute = (chunk: Buffer) => {
    onClientBytes();
    const admitted = admit === undefined ? chunk : admit(chunk);
    isUnanswered = true;
    if (admitted.length > 0 && !computeWriter.write(admitted)) client.pause();
  };
  const toClient = (chunk: Buffer) => {
    isUnanswered = false;
    last = lastBytes(chunk);
    sent.bytes += chunk.length;
    if (!clientWriter.write(chunk)) compute.pause();
    if (farewell !== null) sayFarewell();
    else if (farewellWhenIdle !== null) endIfIdle();
  };

  client.on('error', () => compute.destroy());
  compute.on('error', () => client.end());
  const stopClient = onChunks(client, toCompute);
  const stopCompute = onChunks(compute, toClient);
  client.on('end', () => compute.end());
  compute.on('end', () => client.end());
  client.once('finish', () => later(lingerMs, () => client.destroy()));
  client.once('close', () => compute.destroy());
  compute.once('close', () => {
    if (client.writable) client.end();
    // The compute is gone: what the client sends must still be read, or its end would go unnoticed.
    stopClient();
    client.resume();
  });
  client.resume();
  compute.resume();

  // Either socket may have closed before its listeners were in place.
  if (client.destroyed) compute.destroy();
  if (compute.destroyed && client.writable) client.end();

  const closed = (stream: ByteStream) =>
    new Promise<void>((resolve) => {
      if (stream.closed) resolve();
      else stream.once('close', () => resolve());
    });
  return {
    done: Promise.all([closed(client), closed(compute)]).then(() => timers.forEach(clearTimeout)),
    drain(bytes) {
      farewellWhenIdle = bytes;
      endIfIdle();
    },
    terminate(bytes, graceMs) {
      farewell = bytes;
      sayFarewell();
      later(graceMs / 2, () => {
        if (farewell !== null) interrupt().catch(() => {});
      });
      later(graceMs, () => client.destroy());
    },
  };
}
