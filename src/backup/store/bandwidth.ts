/** Holds all uploads of a store together to a number of bytes a second. */
import { Readable } from 'node:stream';
import { delay } from '../../lib/clock.ts';
import type { ObjectStore, PutOptions } from './object-store.ts';

const pieceBytes = 64 * 1024;

/** The same store, except that its uploads share `bytesPerSecond`. Reading stays as fast as it can be. */
export function limitUploads(store: ObjectStore, bytesPerSecond: number): ObjectStore {
  const pace = createPace(bytesPerSecond);
  return {
    url: store.url,
    put: (key: string, body: Readable | Uint8Array, options?: PutOptions) =>
      store.put(key, Readable.from(paced(body, pace), { objectMode: false }), options),
    get: (key) => store.get(key),
    head: (key) => store.head(key),
    list: (prefix) => store.list(prefix),
    remove: (key) => store.remove(key),
    sweep: () => store.sweep(),
    close: () => store.close(),
  };
}

async function* paced(body: Readable | Uint8Array, pace: Pace): AsyncIterable<Uint8Array> {
  const chunks: AsyncIterable<Uint8Array> | Uint8Array[] = body instanceof Uint8Array ? [body] : body;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      const piece = chunk.subarray(at, at + pieceBytes);
      await pace(piece.length);
      yield piece;
    }
  }
}

type Pace = (bytes: number) => Promise<void>;

/** Each caller gets the span of time that its bytes take, behind the span of the caller before it. */
export function createPace(bytesPerSecond: number, nowMs: () => number = () => performance.now()): Pace {
  let freeAtMs = 0;
  return async (bytes) => {
    const now = nowMs();
    const startsAtMs = Math.max(freeAtMs, now);
    freeAtMs = startsAtMs + (bytes / bytesPerSecond) * 1_000;
    if (startsAtMs > now) await delay(startsAtMs - now);
  };
}
