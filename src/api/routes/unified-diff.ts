/** The difference of two texts, line by line, in the unified form that people and tools read. Pure. */

const contextLines = 3;
/** Beyond so many different lines the shortest script is not looked for: everything between is shown as replaced. */
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

/**
 * Myers's algorithm: the furthest that can be reached on each diagonal with a growing number of differences. Lines are
 * compared by number, and the reach is kept in plain memory: tenants choose the texts, and everybody waits meanwhile.
 */
function shortest(before: readonly string[], after: readonly string[]): Edit[] {
  const numbers = new Map<string, number>();
  const numbered = (lines: readonly string[]) =>
    Int32Array.from(lines, (line) => numbers.get(line) ?? numbers.set(line, numbers.size).size - 1);
  const [olds, news] = [numbered(before), numbered(after)];
  const most = Math.min(before.length + after.length, differencesMax);
  const reach = new Int32Array(2 * most + 3).fill(-1);
  const middle = most + 1;
  reach[middle + 1] = 0;
  const history: Int32Array[] = [];
  for (let count = 0; count <= most; count++) {
    history.push(reach.slice(middle - count - 1, middle + count + 2));
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      const [below = -1, above = -1] = [reach[middle + diagonal - 1], reach[middle + diagonal + 1]];
      let x = goesDown(diagonal, count, below, above) ? above : below + 1;
      while (x < olds.length && x - diagonal < news.length && olds[x] === news[x - diagonal]) x++;
      reach[middle + diagonal] = x;
      if (x >= olds.length && x - diagonal >= news.length) return walkBack(history, before, after);
    }
  }
  return [...before.map((line): Edit => ['-', line]), ...after.map((line): Edit => ['+', line])];
}

const goesDown = (diagonal: number, count: number, below: number, above: number) =>
  diagonal === -count || (diagonal !== count && below < above);

/** `history` has of each count the diagonals from one below its lowest to one above its highest. */
function walkBack(history: readonly Int32Array[], before: readonly string[], after: readonly string[]) {
  const edits: Edit[] = [];
  let [x, y] = [before.length, after.length];
  for (let count = history.length - 1; count >= 0; count--) {
    const diagonal = x - y;
    const at = (wanted: number) => history[count]?.[wanted + count + 1] ?? -1;
    const down = goesDown(diagonal, count, at(diagonal - 1), at(diagonal + 1));
    const fromX = at(down ? diagonal + 1 : diagonal - 1);
    const fromY = fromX - (down ? diagonal + 1 : diagonal - 1);
    while (x > Math.max(fromX, 0) && y > Math.max(fromY, 0) && x - 1 >= (down ? fromX : fromX + 1)) {
      edits.push([' ', before[--x] ?? '']);
      y--;
    }
    if (count === 0) break;
    if (down) edits.push(['+', after[--y] ?? '']);
    else edits.push(['-', before[--x] ?? '']);
  }
  return edits.reverse();
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
