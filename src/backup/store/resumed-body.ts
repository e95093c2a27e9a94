/**
 * The body of an object whose connection may be lost in the middle: the rest is asked for again, from the byte at which
 * it broke off. A restore reads for hours, and one lost connection must not be the end of it.
 */
import { Readable } from 'node:stream';
import { delay } from '../../lib/clock.ts';
import { StoreError } from './object-store.ts';

export interface ObjectBody {
  readonly body: Readable;
  /** Of the whole object. */
  readonly bytes: number;
}

export interface Resuming {
  /** The rest of the same version of the object. Fails with ObjectChangedError if there is only another one. */
  readonly readFrom: (at: number) => Promise<Readable>;
  readonly explain: (error: unknown) => unknown;
  /** How long the n-th attempt in a row that brings no byte is waited for. */
  readonly pauseMs?: (failures: number) => number;
}

/** In a row, without a byte in between: with the pauses, a store may be away for about half a minute. */
const failuresMax = 6;
const growingPause = (failures: number) => 500 * 2 ** (failures - 1);

export function resumedBody(first: ObjectBody, resuming: Resuming): Readable {
  return Readable.from(pieces(first, resuming), { objectMode: false });
}

async function* pieces({ body: first, bytes }: ObjectBody, resuming: Resuming): AsyncIterable<Uint8Array> {
  const { readFrom, explain, pauseMs = growingPause } = resuming;
  let body: Readable | null = first;
  let [at, failures] = [0, 0];
  for (;;) {
    try {
      body ??= await readFrom(at);
      for await (const piece of body as AsyncIterable<Uint8Array>) {
        [at, failures] = [at + piece.length, 0];
        yield piece;
      }
      if (at >= bytes) return;
      throw new StoreError('unreachable', `the body ended at byte ${at} of ${bytes}`);
    } catch (error) {
      // A connection that is closed untidily after the last byte has cost nothing.
      if (at === bytes) return;
      const explained = explain(error);
      failures += 1;
      const isLost = explained instanceof StoreError && explained.trouble === 'unreachable';
      if (!isLost || failures >= failuresMax) throw explained;
      body = null;
      await delay(pauseMs(failures));
    }
  }
}
