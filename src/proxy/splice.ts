/**
 * Copies bytes between a client and a compute, both ways, with backpressure, until both sides are closed. It looks at
 * message lengths from the compute only, to know where an error of the proxy's own can be put without tearing a
 * message apart.
 */
import type { Duplex } from 'node:stream';
import { BoundaryTracker } from './boundary.ts';

export interface Splice {
  /** Resolves when both sockets are closed; never rejects. */
  readonly done: Promise<void>;
  /** Ends the session. The client gets `farewell` at the next end of a message, or never if none comes in time. */
  terminate(farewell: Buffer, graceMs: number): void;
}

/** How long a client that we have closed towards may keep its own half open. */
const lingerMs = 5_000;

export function splice(client: Duplex, compute: Duplex, onClientBytes: () => void): Splice {
  const boundary = new BoundaryTracker();
  let farewell: Buffer | null = null;
  const timers: NodeJS.Timeout[] = [];
  const later = (ms: number, action: () => void) => timers.push(setTimeout(action, ms));

  const sayFarewell = () => {
    if (farewell === null || !boundary.isBetweenMessages) return;
    compute.unpipe(client);
    if (client.writable) client.end(farewell);
    farewell = null;
    compute.destroy();
  };

  client.on('error', () => compute.destroy());
  compute.on('error', () => client.end());
  client.on('data', onClientBytes);
  client.pipe(compute);
  compute.pipe(client);
  // After pipe: its own listener has passed the chunk on by the time this one runs.
  compute.on('data', (chunk: Buffer) => {
    boundary.feed(chunk);
    sayFarewell();
  });
  client.once('finish', () => later(lingerMs, () => client.destroy()));
  client.once('close', () => compute.destroy());
  compute.once('close', () => {
    if (client.writable) client.end();
    // With the compute gone nobody reads the client, and its end would go unnoticed.
    client.resume();
  });

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
      later(graceMs, () => client.destroy());
    },
  };
}
