/**
 * Whether a server is between two messages, judged by nothing but the last bytes that it sent. A direct session is not
 * parsed, so this is used only when the proxy has a message of its own to insert.
 */

const code = (letter: string) => letter.charCodeAt(0);
const headerBytes = 5;
const readyForQuery = code('Z');
const idleStatus = code('I');
const readyBytes = headerBytes + 1;
/** Types of all messages from a server; bytes in the middle of a row rarely look like them. */
const serverTypes: ReadonlySet<number> = new Set([...'123ACDEGHIKNRSTVWZcdnstv'].map(code));
/** A longer chunk is not kept in memory; whether an answer ends with it is decided at once. */
const keptBytesMax = 4_096;
const middle = Buffer.alloc(1);

/** The bytes to keep for a later call of `isBetweenMessages`. */
export function lastBytes(chunk: Buffer): Buffer {
  if (chunk.length <= keptBytesMax) return chunk;
  return endsAnswer(chunk) ? Buffer.from(chunk.subarray(-readyBytes)) : middle;
}

/** Whether the session is outside of a transaction, as far as the last bytes tell; before the first it is. */
export function isIdleAfter(last: Buffer): boolean {
  return last.length === 0 || (endsAnswer(last) && last.at(-1) === idleStatus);
}

/**
 * True at the end of an answer, and after whole messages that came in one piece, such as a notice to an idle session or
 * the start of a COPY. False in the middle of a long answer, where only counting all messages could tell.
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
