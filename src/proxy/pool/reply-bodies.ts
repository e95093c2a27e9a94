/** Server messages by their types, and the few bodies that a pool looks into. */

const code = (letter: string) => letter.charCodeAt(0);
export const parseComplete = code('1');
export const bindComplete = code('2');
export const closeComplete = code('3');
export const dataRow = code('D');
export const rowDescription = code('T');
export const noData = code('n');
export const commandComplete = code('C');
export const emptyQuery = code('I');
export const portalSuspended = code('s');
export const readyForQuery = code('Z');
export const errorMessage = code('E');
export const parameterStatus = code('S');
export const copyIn = code('G');

/** Those whose body must be there as a whole to be understood. */
export function isLookedInto(type: number): boolean {
  return type === readyForQuery || type === errorMessage || type === parameterStatus || type === commandComplete;
}

/** The longest tag that `isSessionCommand` knows, less a few bytes. */
export const tagBytesMax = 20;
const letters = { a: code('A'), c: code('C'), d: code('D'), e: code('E'), i: code('I'), l: code('L'), s: code('S') };

/** SET, LISTEN, LOAD, PREPARE, DISCARD …, DEALLOCATE …, DECLARE …: commands that leave something in the session. */
export function isSessionCommand(chunk: Buffer, start: number): boolean {
  const second = chunk[start + 1];
  const third = chunk[start + 2];
  switch (chunk[start]) {
    case letters.s:
      return second === letters.e && third === code('T');
    case letters.d:
      return second === letters.i || (second === letters.e && (third === letters.a || third === letters.c));
    default:
      return chunk[start] === letters.l || (chunk[start] === code('P') && second === code('R'));
  }
}

export const severityField = code('V');
/** The same in the server's language. */
const localSeverityField = code('S');
export const sqlStateField = code('C');
export const messageField = code('M');
export const contextField = code('W');

/** One field of an ErrorResponse; null when it is not there. */
export function errorField(body: Buffer, field: number): string | null {
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at + 1);
    if (end === -1) return null;
    if (body[at] === field) return body.toString('utf8', at + 1, end);
    at = end + 1;
  }
  return null;
}

/** The ErrorResponse as of a connection that goes on. */
export function asSurvivable(body: Buffer): Buffer {
  const fields: Buffer[] = [];
  for (let at = 0; at < body.length && body[at] !== 0; ) {
    const end = body.indexOf(0, at + 1) + 1 || body.length;
    const isSeverity = body[at] === severityField || body[at] === localSeverityField;
    fields.push(
      isSeverity ? Buffer.concat([body.subarray(at, at + 1), Buffer.from('ERROR\0')]) : body.subarray(at, end),
    );
    at = end;
  }
  return Buffer.concat([...fields, Buffer.from([0])]);
}
