/** The test cases of a source file, found in its text, so that the tidiness test can look into each of them. */

export interface TestBlock {
  /** Counted from one. */
  readonly line: number;
  /** What stands between the parentheses of the call. */
  readonly code: string;
}

/** `test(`, `it(` and what vitest hangs on them; not `test.core.transaction(`, where `test` is a variable. */
const beginning =
  /(?<![\w.$])(?:test|it)((?:\.(?:each|for|runIf|skipIf|concurrent|sequential|fails|only|skip))*)\s*\(/g;

/** Takes the code of a file as `blankOut` leaves it, so that no word in a string is taken for a call. */
export function testBlocksOf(code: string): TestBlock[] {
  return [...code.matchAll(beginning)].map((match) => {
    let open = match.index + match[0].length - 1;
    // `test.each(table)(name, body)`: the case is the second call.
    if (/\.(each|for|runIf|skipIf)$/.test(match[1] ?? '')) open = code.indexOf('(', endOfParentheses(code, open));
    return {
      line: code.slice(0, match.index).split('\n').length,
      code: code.slice(open + 1, endOfParentheses(code, open) - 1),
    };
  });
}

/** The index behind the parenthesis that closes the one at `open`. */
function endOfParentheses(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at += 1) {
    if (code[at] === '(') depth += 1;
    else if (code[at] === ')') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return code.length;
}
