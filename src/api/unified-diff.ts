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

/** Myers's algorithm: the furthest that can be reached on each diagonal with a growing number of differences. */
function shortest(before: readonly string[], after: readonly string[]): Edit[] {
  const reach = new Map<number, number>([[1, 0]]);
  const history: Map<number, number>[] = [];
  for (let count = 0; count <= Math.min(before.length + after.length, differencesMax); count++) {
    history.push(new Map(reach));
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      const down = diagonal === -count || (diagonal !== count && at(reach, diagonal - 1) < at(reach, diagonal + 1));
      let x = down ? at(reach, diagonal + 1) : at(reach, diagonal - 1) + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x++;
      reach.set(diagonal, x);
      if (x >= before.length && x - diagonal >= after.length) return walkBack(history, before, after);
    }
  }
  return [...before.map((line): Edit => ['-', line]), ...after.map((line): Edit => ['+', line])];
}

const at = (reach: ReadonlyMap<number, number>, diagonal: number) => reach.get(diagonal) ?? -1;

function walkBack(history: readonly Map<number, number>[], before: readonly string[], after: readonly string[]) {
  const edits: Edit[] = [];
  let [x, y] = [before.length, after.length];
  for (let count = history.length - 1; count >= 0; count--) {
    const reach = history[count] ?? new Map<number, number>();
    const diagonal = x - y;
    const down = diagonal === -count || (diagonal !== count && at(reach, diagonal - 1) < at(reach, diagonal + 1));
    const fromX = at(reach, down ? diagonal + 1 : diagonal - 1);
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
