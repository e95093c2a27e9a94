/**
 * SQL's `DEALLOCATE name` for a statement that the client has prepared with a Parse. The server knows that statement by
 * another name, shares it with other clients, or does not have it. So the name goes from the client's list, and the
 * server gets a stand-in to deallocate: it replies as it would to the client, in every state of a transaction.
 */
import { headerBytes, requestTypes, statementTarget } from './message-types.ts';

const name = 'catnap_stand_in';
const sql = `DEALLOCATE ${name}`;
/** A longer text is not recognised; names of drivers are short. */
const textBytesMax = 300;
/** Parameter types: none. */
const noTypes = '\0\0';

export const standInName = Buffer.from(name);

/** Makes the stand-in anew: two requests, a Close and a Parse. */
export const makeStandIn = Buffer.concat([
  message(requestTypes.close, `${String.fromCharCode(statementTarget)}${name}\0`),
  message(requestTypes.parse, `${name}\0\0${noTypes}`),
]);
/** The same, complete, for use before a simple query: if the Parse failed, the server would wait for a Sync. */
export const makeStandInAndSync = Buffer.concat([makeStandIn, message(requestTypes.sync, '')]);
export const queryStandIn = message(requestTypes.query, `${sql}\0`);
export const parseStandIn = message(requestTypes.parse, `\0${sql}\0${noTypes}`);

const pattern = /^deallocate\s+(?:prepare\s+)?(?:"((?:[^"]|"")+)"|([a-z_\x80-\xff][\w$\x80-\xff]*))[\s;]*$/i;

/**
 * The name in a text that is `DEALLOCATE [PREPARE] name` and nothing else, as bytes in latin1; null for any other text.
 * This runs for every simple query, so it looks at the first three bytes before it decodes anything.
 */
export function deallocatedName(chunk: Buffer, start: number, end: number): string | null {
  if (!isLetter(chunk[start], 'd') || !isLetter(chunk[start + 1], 'e') || !isLetter(chunk[start + 2], 'a')) return null;
  const textEnd = chunk.indexOf(0, start);
  if (textEnd === -1 || textEnd >= end || textEnd - start > textBytesMax) return null;
  const [, quoted, plain] = pattern.exec(chunk.toString('latin1', start, textEnd)) ?? [];
  if (quoted !== undefined) return quoted.replaceAll('""', '"');
  // Bytes beyond ASCII are parts of characters here, and keep their case.
  const folded = plain?.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  // `DEALLOCATE ALL` goes to the server as it is: it drops what SQL has prepared too.
  return folded === undefined || folded === 'all' || folded === 'prepare' ? null : folded;
}

function isLetter(byte: number | undefined, letter: string): boolean {
  return ((byte ?? 0) | 0x20) === letter.charCodeAt(0);
}

function message(type: number, body: string): Buffer {
  const bytes = Buffer.alloc(headerBytes + body.length);
  bytes[0] = type;
  bytes.writeUInt32BE(body.length + 4, 1);
  bytes.write(body, headerBytes, 'latin1');
  return bytes;
}
