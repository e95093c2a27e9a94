/**
 * From JSON to the text form of Postgres parameters. A number is passed on digit by digit: JSON.parse would round
 * whatever a double cannot hold, and a rounded bigint is a wrong answer.
 */

/** Postgres text cannot contain a zero byte, so no valid parameter looks like this. */
const longNumberMark = '\0number:';
const stringOrLongNumber = /"(?:[^"\\]+|\\.)*"|-?\d[\d.eE+-]{15,}/g;
const markedNumber = /"\\u0000number:([^"]*)"/g;

export function parseJson(text: string): unknown {
  if (!/[\d.]{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(stringOrLongNumber, (token) => {
    // Text that is no number must stay a syntax error.
    if (token.startsWith('"') || !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(token)) return token;
    return JSON.stringify(`${longNumberMark}${token}`);
  });
  return JSON.parse(marked);
}

/** Null stands for SQL NULL. Arrays become array literals, objects become JSON, everything else its plain text. */
export function parameterText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return withoutMark(value);
  if (Array.isArray(value)) return arrayLiteral(value);
  return plainJson(value);
}

function arrayLiteral(values: readonly unknown[]): string {
  const elements = values.map((value) => {
    if (value === null) return 'NULL';
    if (Array.isArray(value)) return arrayLiteral(value);
    const text = parameterText(value) ?? 'NULL';
    return typeof value === 'number' || typeof value === 'boolean' ? text : quotedElement(text);
  });
  return `{${elements.join(',')}}`;
}

function quotedElement(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

function plainJson(value: unknown): string {
  return JSON.stringify(value).replace(markedNumber, '$1');
}

function withoutMark(text: string): string {
  return text.startsWith(longNumberMark) ? text.slice(longNumberMark.length) : text;
}
