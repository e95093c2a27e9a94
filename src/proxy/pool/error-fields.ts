/** Reads and rewrites the body of an ErrorResponse or NoticeResponse: fields of one letter and a text each. */

const code = (letter: string) => letter.charCodeAt(0);

export const severityField = code('V');
/** The severity in the language of the server. */
const localizedSeverityField = code('S');
export const sqlStateField = code('C');
export const contextField = code('W');

/** The text of one field, or null when the body does not have it. */
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

/** The same error with the severity ERROR, for a client whose own connection survives the server's FATAL error. */
export function asNonFatal(body: Buffer): Buffer {
  const fields: Buffer[] = [];
  for (let at = 0; at < body.length && body[at] !== 0; ) {
    const end = body.indexOf(0, at + 1) + 1 || body.length;
    const isSeverity = body[at] === severityField || body[at] === localizedSeverityField;
    fields.push(
      isSeverity ? Buffer.concat([body.subarray(at, at + 1), Buffer.from('ERROR\0')]) : body.subarray(at, end),
    );
    at = end;
  }
  return Buffer.concat([...fields, Buffer.from([0])]);
}
