/**
 * Whether a server stands between two messages, told from nothing but the last bytes that it sent. A direct session is
 * not parsed, so this is asked only when the proxy has something of its own to say.
 */

const code = (letter: string) => letter.charCodeAt(0);
const headerBytes = 5;
const readyForQuery = code('Z');
const readyBytes = headerBytes + 1;
/** Whatever a server says; bytes in the middle of a row rarely look like it. */
const serverTypes: ReadonlySet<number> = new Set([...'123ACDEGHIKNRSTVWZcdnstv'].map(code));
/** A longer chunk is not kept for its own sake. */
const keptBytesMax = 4_096;
const nothing = Buffer.alloc(0);
const middle = Buffer.alloc(1);

/** What of a chunk has to be kept to ask about it later. */
export function lastBytes(chunk: Buffer): Buffer {
  if (chunk.length <= keptBytesMax) return chunk;
  return endsAnswer(chunk) ? nothing : middle;
}

/**
 * True at the end of an answer, and after whole messages that came in one piece: what an idle session is told, and
 * what a COPY begins with. False in the middle of a long answer, where nobody who has not counted can know.
 */
export function isBetweenMessages(last: Buffer): boolean {
  if (endsAnswer(last)) return true;
  let at = 0;
  while (last.length - at >= headerBytes) {
    if (!serverTypes.has(last[at] ?? 0)) return false;
    at += 1 + last.readUInt32BE(at + 1);
  }
  return at === last.length;
}

function endsAnswer(chunk: Buffer): boolean {
  const at = chunk.length - readyBytes;
  return at >= 0 && chunk[at] === readyForQuery && chunk.readUInt32BE(at + 1) === headerBytes;
}
