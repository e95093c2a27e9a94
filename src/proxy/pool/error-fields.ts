/** Reads and rewrites the body of an ErrorResponse or NoticeResponse: fields of one letter and a text each. */

const code = (letter: string) => letter.charCodeAt(0);

export const severityField = code('V');
/** The severity in the language of the server. */
const localizedSeverityField = code('S');
export const sqlStateField = code('C');
const messageField = code('M');
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
  return withTexts(body, (field, text) => {
    return field === severityField || field === localizedSeverityField ? 'ERROR' : text;
  });
}

/** A prepared statement as its server calls it, and as the pooled client does. */
export interface StatementAlias {
  readonly onServer: Buffer;
  /** The bytes of the name, as latin1. */
  readonly byClient: string;
}

/**
 * Errors whose message names the prepared statement, and quotes nothing else of the client's: a Bind with too few
 * parameters or too many, a statement that does not exist, one that exists already.
 */
const namingStates = ['08P01', '26000', '42P05'];

/** The same error with the client's own name of the statement in its message; null if the message does not name it. */
export function withClientsName(body: Buffer, { onServer, byClient }: StatementAlias): Buffer | null {
  if (!namingStates.includes(errorField(body, sqlStateField) ?? '') || !body.includes(onServer)) return null;
  // Only the name is replaced, in whatever language and encoding the rest is.
  const name = onServer.toString('latin1');
  return withTexts(body, (field, text) => (field === messageField ? text.replace(name, () => byClient) : text));
}

/** The body with each text as `edit` returns it; texts are latin1, so that their bytes stay as they are. */
function withTexts(body: Buffer, edit: (field: number, text: string) => string): Buffer {
  const fields: Buffer[] = [];
  for (let at = 0; at < body.length && body[at] !== 0; ) {
    const end = body.indexOf(0, at + 1);
    const textEnd = end === -1 ? body.length : end;
    const text = edit(body[at] ?? 0, body.toString('latin1', at + 1, textEnd));
    fields.push(body.subarray(at, at + 1), Buffer.from(`${text}\0`, 'latin1'));
    at = textEnd + 1;
  }
  return Buffer.concat([...fields, Buffer.from([0])]);
}
