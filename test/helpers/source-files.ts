/** The project's own sources as the tidiness test sees them: text, code without comments and strings, imports. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface SourceFile {
  /** From the root of the project, with forward slashes. */
  readonly path: string;
  readonly text: string;
  /** Comments and strings are blanked out; lines stay where they are. */
  readonly code: string;
  /** Strings are taken out, so that what is left has the length of the code and the comments. */
  readonly prose: string;
  readonly isTest: boolean;
  /** Paths from the root for files of the project, names for packages. */
  readonly imports: readonly string[];
}

const root = fileURLToPath(new URL('../..', import.meta.url));

export function readSources(folders: readonly string[]): SourceFile[] {
  return folders.flatMap(sourcesIn).map(readSource);
}

/** Packages are somebody else's sources. */
function sourcesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sourcesIn(path);
    return /\.(ts|tsx|mts)$/.test(entry.name) ? [path] : [];
  });
}

function readSource(path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8');
  let code: string | undefined;
  let prose: string | undefined;
  return {
    path,
    text,
    // Made when they are asked for: following imports needs neither, and they take most of the time.
    get code() {
      code ??= blankOut(text);
      return code;
    },
    get prose() {
      prose ??= withoutStrings(text);
      return prose;
    },
    isTest: path.endsWith('.test.ts'),
    imports: importsOf(path, text),
  };
}

const importPattern =
  /(?:^|[\s;])(?:import|export)\s(?:[^'";]*?\sfrom\s)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g;

export function importsOf(path: string, text: string): string[] {
  const found = [...text.matchAll(importPattern)].map((match) => match[1] ?? match[2] ?? '');
  return found.map((name) => (name.startsWith('.') ? join(dirname(path), name) : name));
}

export function blankOut(text: string): string {
  return replacePassages(text, (passage) => passage.replace(/[^\n]/g, ' '));
}

export function withoutStrings(text: string): string {
  return replacePassages(text, (passage) => (/^\/[/*]/.test(passage) ? passage : passage.replace(/[^\n]/g, '')));
}

/**
 * Not a parser: it knows comments, strings, templates and where a slash can only begin a regular expression. Templates
 * are one passage, with the code inside them.
 */
function replacePassages(text: string, replace: (passage: string) => string): string {
  let result = '';
  let at = 0;
  while (at < text.length) {
    const end = endOfPassage(text, at);
    result += end === at ? text[at] : replace(text.slice(at, end));
    at = end === at ? at + 1 : end;
  }
  return result;
}

function endOfPassage(text: string, at: number): number {
  const two = text.slice(at, at + 2);
  const after = (end: number, length: number) => (end === -1 ? text.length : end + length);
  if (two === '//') return after(text.indexOf('\n', at), 0);
  if (two === '/*') return after(text.indexOf('*/', at), 2);
  const first = text[at] ?? '';
  if (first === "'" || first === '"') return endOfQuoted(text, at, first);
  if (first === '`') return endOfTemplate(text, at);
  if (first === '/' && /(^|[([{,;=:!&|?+<>]|\breturn|=>)\s*$/.test(text.slice(Math.max(0, at - 40), at)))
    return endOfRegex(text, at);
  return at;
}

function endOfQuoted(text: string, at: number, quote: string): number {
  for (let i = at + 1; i < text.length; i += 1) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === quote) return i + 1;
  }
  return text.length;
}

function endOfTemplate(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i += 1) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '`') return i + 1;
    else if (text.startsWith('${', i)) i = endOfBraces(text, i + 1) - 1;
  }
  return text.length;
}

function endOfBraces(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; i += 1) {
    const first = text[i] ?? '';
    if (first === '{') depth += 1;
    else if (first === '}') {
      depth -= 1;
      if (depth === 0) return i + 1;
    } else if (first === '`') i = endOfTemplate(text, i) - 1;
    else if (first === "'" || first === '"') i = endOfQuoted(text, i, first) - 1;
  }
  return text.length;
}

function endOfRegex(text: string, at: number): number {
  let inClass = false;
  for (let i = at + 1; i < text.length; i += 1) {
    const first = text[i];
    if (first === '\\') i += 1;
    else if (first === '[') inClass = true;
    else if (first === ']') inClass = false;
    else if (first === '/' && !inClass) return i + 1;
    else if (first === '\n') return at;
  }
  return at;
}
