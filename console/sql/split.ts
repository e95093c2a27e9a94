/** Cuts a text into statements at its semicolons, those in strings, names, comments and dollar quotes left out. */

export interface Statement {
  readonly text: string;
  /** Where it begins in the whole text. */
  readonly from: number;
}

export function splitStatements(text: string): Statement[] {
  const found: Statement[] = [];
  let start = 0;
  let at = 0;
  while (at < text.length) {
    if (text[at] === ';') {
      add(found, text, start, at);
      start = at + 1;
      at += 1;
    } else {
      at = skip(text, at);
    }
  }
  add(found, text, start, text.length);
  return found;
}

function add(found: Statement[], text: string, start: number, end: number): void {
  const raw = text.slice(start, end);
  const body = raw.trimStart();
  if (withoutComments(body).trim() === '') return;
  found.push({ text: body.trimEnd(), from: start + raw.length - body.length });
}

function withoutComments(text: string): string {
  return text.replace(/--[^\n]*/g, '').replace(/\/\*[\s\S]*?\*\//g, '');
}

/** The place after whatever begins here. */
function skip(text: string, at: number): number {
  const rest = text.slice(at, at + 70);
  const end = (closing: string, from: number) => {
    const place = text.indexOf(closing, from);
    return place === -1 ? text.length : place + closing.length;
  };
  if (rest.startsWith('--')) return end('\n', at);
  if (rest.startsWith('/*')) return end('*/', at + 2);
  if (rest.startsWith("'")) return endOfString(text, at, /[eE]/.test(text[at - 1] ?? ''));
  if (rest.startsWith('"')) return end('"', at + 1);
  const dollar = /^\$([A-Za-z_]\w*)?\$/.exec(rest)?.[0];
  if (dollar !== undefined) return end(dollar, at + dollar.length);
  return at + 1;
}

/** A doubled quote opens the string again, so it needs no care; a backslash does, in strings that know it. */
function endOfString(text: string, at: number, knowsBackslash: boolean): number {
  for (let place = at + 1; place < text.length; place += 1) {
    if (knowsBackslash && text[place] === '\\') place += 1;
    else if (text[place] === "'") return place + 1;
  }
  return text.length;
}
