/** Values as Postgres writes them, taken apart for people and for other programs. */
import type { ValueKind } from './types.ts';

/** A value of a result; null is NULL. */
export type Value = string | null;
export type Row = readonly Value[];

export type Nested = Value | readonly Nested[];

/** What a cell shows: Postgres writes `t` and `f`. */
export function displayText(value: string, kind: ValueKind): string {
  if (kind !== 'boolean') return value;
  return value === 't' ? 'true' : value === 'f' ? 'false' : value;
}

/** An array literal such as `{1,NULL,{"a b"}}`, with bounds in front unless they begin at 1; null if it is none. */
export function parseArray(literal: string): readonly Nested[] | null {
  const start = literal.indexOf('{');
  if (start === -1 || !/^(\[[-\d:]+\])*=?$/.test(literal.slice(0, start))) return null;
  const found = readArray(literal, start);
  return found === null || found.end !== literal.length ? null : found.items;
}

function readArray(literal: string, from: number): { readonly items: readonly Nested[]; readonly end: number } | null {
  const items: Nested[] = [];
  for (let at = from + 1; at < literal.length; ) {
    const character = literal.charAt(at);
    if (character === '}') return { items, end: at + 1 };
    if (character === ',') at += 1;
    else if (character === '{') {
      const inner = readArray(literal, at);
      if (inner === null) return null;
      items.push(inner.items);
      at = inner.end;
    } else {
      const { item, end } = readItem(literal, at);
      items.push(item);
      at = end;
    }
  }
  return null;
}

function readItem(literal: string, from: number): { readonly item: Value; readonly end: number } {
  if (literal.charAt(from) === '"') {
    let at = from + 1;
    while (at < literal.length && literal.charAt(at) !== '"') at += literal.charAt(at) === '\\' ? 2 : 1;
    return { item: literal.slice(from + 1, at).replace(/\\(.)/gs, '$1'), end: at + 1 };
  }
  let at = from;
  while (at < literal.length && !',{}'.includes(literal.charAt(at))) at += 1;
  const word = literal.slice(from, at);
  return { item: word === 'NULL' ? null : word, end: at };
}

/** JSON with an indent; null for a text that is no JSON object or array. Numbers keep their digits. */
export function indentJson(text: string): string | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  return indented(text);
}

/** Not by parsing and printing, which would change numbers that a double cannot hold. */
function indented(text: string): string {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/gs) ?? [];
  let depth = 0;
  let result = '';
  for (const [at, token] of tokens.entries()) {
    const opens = token === '{' || token === '[';
    const closes = token === '}' || token === ']';
    const isEmpty = closes && /[[{]$/.test(result.trimEnd());
    if (closes) depth -= 1;
    if (closes && !isEmpty) result += newLine(depth);
    if (closes && isEmpty) result = result.trimEnd();
    result += token === ':' ? ': ' : token;
    if (opens) depth += 1;
    if (token === ',' || (opens && tokens[at + 1] !== undefined)) result += newLine(depth);
  }
  return result;
}

const newLine = (depth: number) => `\n${'  '.repeat(depth)}`;

/** Bytes of a `bytea` in its usual form, `\x6869`; null for another form. */
export function byteCount(text: string): number | null {
  return /^\\x([0-9a-f]{2})*$/i.test(text) ? (text.length - 2) / 2 : null;
}

const dumpWidth = 16;

/** Lines of place, bytes and letters, of the first bytes. */
export function hexDump(text: string, bytesMax: number): string {
  const bytes = (text.slice(2, 2 + 2 * bytesMax).match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += dumpWidth) {
    const part = bytes.slice(at, at + dumpWidth);
    const pairs = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${at.toString(16).padStart(8, '0')}  ${pairs.padEnd(dumpWidth * 3)} ${letters}`);
  }
  return lines.join('\n');
}
