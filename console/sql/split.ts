/**
 * Cuts a text into statements at its semicolons. The editor's own parser says which semicolons are the end of a
 * statement and which are inside a string, a quoted name, a comment or a dollar quote.
 */
import { PostgreSQL, SQLDialect } from '@codemirror/lang-sql';

export interface Statement {
  readonly text: string;
  /** Where it begins in the whole text. */
  readonly from: number;
}

/**
 * The parser takes a run of operator characters as one operator; Postgres ends it where a comment begins, as in
 * `select *--`. Without the two characters that begin comments a run ends before them. That `-` and `/` are no
 * operators then does not matter here.
 */
const dialect = SQLDialect.define({ ...PostgreSQL.spec, operatorChars: '+*<>=~!@#%^&|`?' });

export function splitStatements(text: string): Statement[] {
  const { ends, withoutComments } = parse(text);
  const found: Statement[] = [];
  let start = 0;
  for (const end of [...ends, text.length]) {
    const raw = text.slice(start, end);
    const body = raw.trimStart();
    if (withoutComments.slice(start, end).trim() !== '') {
      found.push({ text: body.trimEnd(), from: start + raw.length - body.length });
    }
    start = end + 1;
  }
  return found;
}

const begins = /^(begin|start\s+transaction)\b/i;
const ends = /^(commit|end|abort|rollback(?!(\s+(work|transaction))?\s+to\b))\b/i;

/** What has to run in one session: a transaction from its BEGIN to its end, or to the end of the text. */
export function groupTransactions(statements: readonly Statement[]): Statement[][] {
  const groups: Statement[][] = [];
  let open: Statement[] | null = null;
  for (const statement of statements) {
    const words = parse(statement.text).withoutComments.trimStart();
    if (open === null) {
      const group = [statement];
      groups.push(group);
      if (begins.test(words)) open = group;
    } else {
      open.push(statement);
      if (ends.test(words)) open = null;
    }
  }
  return groups;
}

interface Parsed {
  /** Where the semicolons are. */
  readonly ends: readonly number[];
  /** As long as the text, with blanks in place of comments. */
  readonly withoutComments: string;
}

function parse(text: string): Parsed {
  const ends: number[] = [];
  let withoutComments = '';
  let previous = '';
  let depth = 0;
  dialect.language.parser.parse(text).iterate({
    enter: ({ name, from, to }) => {
      const token = text.slice(from, to);
      if (name === ';' && depth === 0) ends.push(from);
      if (name === 'LineComment' || (name === 'BlockComment' && isClosed(token))) {
        withoutComments += text.slice(withoutComments.length, from) + ' '.repeat(to - from);
      }
      if (name !== 'Keyword' && name !== 'Identifier') return;
      const word = token.toLowerCase();
      depth += stepInto(word, previous, depth);
      previous = word;
    },
  });
  return { ends, withoutComments: withoutComments + text.slice(withoutComments.length) };
}

/** One that is not closed is sent, so that Postgres says so. */
const isClosed = (comment: string) => comment.length > 3 && comment.endsWith('*/');

/** `begin atomic … end` is the body of a function, with semicolons of its own; the parser knows no such thing. */
function stepInto(word: string, previous: string, depth: number): number {
  if (depth === 0) return previous === 'begin' && word === 'atomic' ? 1 : 0;
  if (word === 'case') return 1;
  return word === 'end' ? -1 : 0;
}
