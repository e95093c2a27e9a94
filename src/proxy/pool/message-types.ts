/** The type bytes of the Postgres protocol's messages that a pool has to recognise, in both directions. */

const code = (letter: string) => letter.charCodeAt(0);

/** A message starts with its type (one byte) and its length (four bytes, which count themselves). */
export const headerBytes = 5;

/** From the client to the server. */
export const requestTypes = {
  parse: code('P'),
  bind: code('B'),
  describe: code('D'),
  execute: code('E'),
  close: code('C'),
  sync: code('S'),
  flush: code('H'),
  query: code('Q'),
  functionCall: code('F'),
  copyData: code('d'),
  copyDone: code('c'),
  copyFail: code('f'),
  terminate: code('X'),
} as const;

/** Whether such a request can name a prepared statement in a field of its own. */
export function namesStatement(type: number): boolean {
  return (
    type === requestTypes.bind ||
    type === requestTypes.parse ||
    type === requestTypes.describe ||
    type === requestTypes.close
  );
}

/** First byte of the body of a Describe or a Close that names a statement and not a portal. */
export const statementTarget = code('S');

/** From the server to the client; plain constants, since the scanner compares every message with them. */
export const parseComplete = code('1');
export const bindComplete = code('2');
export const closeComplete = code('3');
export const dataRow = code('D');
export const rowDescription = code('T');
export const noData = code('n');
export const commandComplete = code('C');
export const emptyQueryResponse = code('I');
export const portalSuspended = code('s');
export const readyForQuery = code('Z');
export const errorResponse = code('E');
export const noticeResponse = code('N');
export const parameterStatus = code('S');
export const copyInResponse = code('G');
