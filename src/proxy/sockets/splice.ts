/**
 * Copies bytes between a client and a compute, both ways, with backpressure, until both sides are closed. It does not
 * look at them: only when the proxy itself ends the session do the last ones tell where its words can be put without
 * tearing a message apart.
 */
import type { Duplex } from 'node:stream';
import { isBetweenMessages, lastBytes } from './boundary.ts';
import { onChunks } from './chunks.ts';
import { writerTo } from './straight-writer.ts';

export interface Splice {
  /** Resolves when both sockets are closed; never rejects. */
  readonly done: Promise<void>;
  /**
   * Ends the session. An idle client gets `farewell` at once, another one at the end of its answer, which is cut short
   * when half of the grace has passed; who has not reached an end by then is closed without a word.
   */
  terminate(farewell: Buffer, graceMs: number): void;
}

export interface SpliceOptions {
  readonly client: Duplex;
  readonly compute: Duplex;
  /** Called for every chunk. */
  readonly onClientBytes: () => void;
  /** Makes the compute stop what it does; may fail. */
  readonly interrupt: () => Promise<void>;
}

/** How long a client that we have closed towards may keep its own half open. */
const lingerMs = 5_000;
const nothing = Buffer.alloc(0);

export function splice({ client, compute, onClientBytes, interrupt }: SpliceOptions): Splice {
  let last: Buffer = nothing;
  let farewell: Buffer | null = null;
  const timers: NodeJS.Timeout[] = [];
  const later = (ms: number, action: () => void) => timers.push(setTimeout(action, ms));

  const sayFarewell = () => {
    if (farewell === null || !isBetweenMessages(last)) return;
    stopCompute();
    if (client.writable) client.end(farewell);
    farewell = null;
    compute.destroy();
  };

  const clientWriter = writerTo(client, () => compute.resume());
  const computeWriter = writerTo(compute, () => client.resume());
  const toCompute = (chunk: Buffer) => {
    onClientBytes();
    if (!computeWriter.write(chunk)) client.pause();
  };
  const toClient = (chunk: Buffer) => {
    last = lastBytes(chunk);
    if (!clientWriter.write(chunk)) compute.pause();
    if (farewell !== null) sayFarewell();
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
    // With the compute gone nobody takes what the client says, and its end would go unnoticed.
    stopClient();
    client.resume();
  });
  client.resume();
  compute.resume();

  // Either may have gone in the moment before its listeners were in place.
  if (client.destroyed) compute.destroy();
  if (compute.destroyed && client.writable) client.end();

  const closed = (stream: Duplex) =>
    new Promise<void>((resolve) => {
      if (stream.closed) resolve();
      else stream.once('close', () => resolve());
    });
  return {
    done: Promise.all([closed(client), closed(compute)]).then(() => timers.forEach(clearTimeout)),
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
