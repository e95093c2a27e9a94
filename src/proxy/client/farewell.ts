/** The last message to a client. */
import type { ByteStream } from '../protocol/byte-stream.ts';

/** How long a client has to read it and to close its side. */
const farewellMs = 2_000;

/** Ends our half and reads the other to its end: closing with unread bytes would discard the message on its way. */
export function sayFarewell(stream: ByteStream, message: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) return resolve();
    const timer = setTimeout(resolve, farewellMs);
    stream.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    stream.end(message);
    stream.resume();
  });
}
