/** The last words to a client. */
import type { Duplex } from 'node:stream';

/** How long a client has to read them and to close its side. */
const farewellMs = 2_000;

/** Ends our half and reads the other to its end: closing with unread bytes would throw our last words away. */
export function sayFarewell(stream: Duplex, words: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) return resolve();
    const timer = setTimeout(resolve, farewellMs);
    stream.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    stream.end(words);
    stream.resume();
  });
}
