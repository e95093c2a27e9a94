/**
 * Whether a server stands between two messages, told from nothing but the last bytes that it sent. A direct session is
 * not parsed, so this is asked only when the proxy has something of its own to say.
 */

const headerBytes = 5;
const readyForQuery = 'Z'.charCodeAt(0);
const readyBytes = headerBytes + 1;
/** A longer chunk is not kept for its own sake. */
const keptBytesMax = 4_096;

/** What of a chunk has to be kept to ask about it later. */
export function lastBytes(chunk: Buffer): Buffer {
  return chunk.length <= keptBytesMax ? chunk : Buffer.from(chunk.subarray(-readyBytes));
}

/**
 * True at the end of an answer, and after whole messages that came in one piece: what an idle session is told, and
 * what a COPY begins with. False in the middle of a long answer, where nobody who has not counted can know.
 */
export function isBetweenMessages(last: Buffer): boolean {
  const tail = last.subarray(-readyBytes);
  if (tail.length === readyBytes && tail[0] === readyForQuery && tail.readUInt32BE(1) === 5) return true;
  let at = 0;
  while (last.length - at >= headerBytes) at += 1 + last.readUInt32BE(at + 1);
  return at === last.length;
}
