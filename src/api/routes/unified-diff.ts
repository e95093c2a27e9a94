/**
 * The difference of two texts, line by line, in the unified form that people and tools read. Pure. The library finds
 * the changed lines; its own patches are not used, because they choose other lines among equal ones than before.
 */
import { diffArrays } from 'diff';

const contextLines = 3;
/** Beyond this many different lines the shortest script is not searched: everything between is shown as replaced. */
const differencesMax = 2_000;

type Edit = readonly [kind: ' ' | '-' | '+', line: string];

/** Empty when the texts are the same. */
export function unifiedDiff(before: { name: string; text: string }, after: { name: string; text: string }): string {
  if (before.text === after.text) return '';
  const hunks = hunksOf(editsOf(linesOf(before.text), linesOf(after.text)));
  return [`--- ${before.name}`, `+++ ${after.name}`, ...hunks, ''].join('\n');
}

const linesOf = (text: string) => text.replace(/\n$/, '').split('\n');

function editsOf(before: readonly string[], after: readonly string[]): Edit[] {
  let start = 0;
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start++;
  let end = 0;
  const room = Math.min(before.length, after.length) - start;
  while (end < room && before.at(-1 - end) === after.at(-1 - end)) end++;
  const same = (line: string): Edit => [' ', line];
  const middle = [before.slice(start, before.length - end), after.slice(start, after.length - end)] as const;
  return [...before.slice(0, start).map(same), ...shortest(...middle), ...before.slice(before.length - end).map(same)];
}

function shortest(before: readonly string[], after: readonly string[]): Edit[] {
  const [olds, news] = [new Set(before), new Set(after)];
  // Each line that only one text has is a difference, so counting them can avoid the search.
  const alone = before.filter((line) => !news.has(line)).length + after.filter((line) => !olds.has(line)).length;
  const edits = alone > differencesMax ? null : search(before, after);
  return edits ?? [...before.map((line): Edit => ['-', line]), ...after.map((line): Edit => ['+', line])];
}

/** Lines are compared by number: tenants choose the texts, long lines among them, and every other request waits. */
function search(before: readonly string[], after: readonly string[]): Edit[] | null {
  const lines = [...new Set([...before, ...after])];
  const numbers = new Map(lines.map((line, number) => [line, number]));
  const numbered = (texts: readonly string[]) => texts.map((line) => numbers.get(line) ?? -1);
  const changes = diffArrays(numbered(before), numbered(after), { maxEditLength: differencesMax });
  if (changes === undefined) return null;
  return changes.flatMap(({ added, removed, value }) =>
    value.map((number): Edit => [added ? '+' : removed ? '-' : ' ', lines[number] ?? '']),
  );
}

/** Changes that are close share a hunk. */
function hunksOf(edits: readonly Edit[]): string[] {
  const changed = edits.flatMap(([kind], index) => (kind === ' ' ? [] : [index]));
  const lines: string[] = [];
  let [oldLine, newLine, done] = [1, 1, 0];
  for (let next = 0; next < changed.length; ) {
    const from = Math.max((changed[next] ?? 0) - contextLines, done);
    let last = changed[next] ?? 0;
    while (next < changed.length && (changed[next] ?? 0) - last <= 2 * contextLines) last = changed[next++] ?? 0;
    const to = Math.min(last + contextLines + 1, edits.length);
    for (const [kind] of edits.slice(done, from)) {
      if (kind !== '+') oldLine++;
      if (kind !== '-') newLine++;
    }
    const hunk = edits.slice(from, to);
    const [olds, news] = (['+', '-'] as const).map((other) => hunk.filter(([kind]) => kind !== other).length);
    lines.push(`@@ -${range(oldLine, olds ?? 0)} +${range(newLine, news ?? 0)} @@`);
    lines.push(...hunk.map(([kind, line]) => `${kind}${line}`));
    oldLine += olds ?? 0;
    newLine += news ?? 0;
    done = to;
  }
  return lines;
}

const range = (line: number, count: number) => (count === 1 ? `${line}` : `${count === 0 ? line - 1 : line},${count}`);
