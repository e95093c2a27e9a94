/** Tools that run SQL: within limits of rows, size and time, and in a transaction that cannot write unless asked to. */
import { z } from 'zod';
import { CliFailure } from '../kit/failure.ts';
import { runSql, type SqlResult, type SqlStatement } from '../kit/run-sql.ts';
import { connectionOf, findBranch, findCompute } from '../kit/targets.ts';
import { changes, databaseInput, type Place, reads, type Toolbox } from './toolbox.ts';

/** What is in a reply is what a model has to read. */
const rowsMax = 1_000;
const rowsByDefault = 100;
const charactersMax = 200_000;
const secondsMax = 60;
const secondsByDefault = 10;

const limits = {
  max_rows: z.int().min(1).max(rowsMax).default(rowsByDefault).describe('The rest is left out, and has_more says so'),
  timeout_seconds: z.int().min(1).max(secondsMax).default(secondsByDefault).describe('When the statement is cancelled'),
};

const statementInput = {
  sql: z.string().min(1).describe('One statement; values may be $1, $2 and so on'),
  params: z.array(z.unknown()).default([]).describe('Values for $1, $2 and so on'),
  ...databaseInput,
  ...limits,
};

export function addSqlTools(tools: Toolbox): void {
  tools.add(
    'run_sql',
    {
      title: 'Run SQL that reads',
      description: 'Runs one statement in a read-only transaction and returns its rows. Wakes the compute if it naps.',
      input: statementInput,
      hints: reads,
    },
    (given) => run(tools, given, true),
  );
  tools.add(
    'explain_sql',
    {
      title: 'Explain a statement',
      description: 'Returns the plan of a statement. With analyze it runs it, in a read-only transaction.',
      input: {
        sql: z.string().min(1).describe('One statement'),
        analyze: z.boolean().default(false).describe('Run it, and measure'),
        ...databaseInput,
        timeout_seconds: limits.timeout_seconds,
      },
      hints: reads,
    },
    async ({ sql, analyze, timeout_seconds: seconds, ...place }) => {
      const query = `EXPLAIN ${analyze ? '(ANALYZE, BUFFERS)' : ''} ${sql}`;
      const { rows } = await last(tools, place, [{ query }], seconds, true);
      return { plan: rows.map(([line]) => String(line)) };
    },
  );
  if (tools.access !== 'read') {
    tools.add(
      'execute_sql',
      {
        title: 'Run SQL that writes',
        description:
          tools.access === 'write'
            ? 'Runs one statement that may change data or schema.'
            : 'Runs one statement that may change data or schema, on a branch that is neither default nor protected.',
        input: statementInput,
        hints: changes,
      },
      async (given) => {
        tools.requireChangeable((await findBranch(tools.reach, tools.onBranch(given))).branch);
        return run(tools, given, false);
      },
    );
  }
}

type Statement = z.infer<z.ZodObject<typeof statementInput>> & Place;

async function run(tools: Toolbox, given: Statement, isReadOnly: boolean): Promise<object> {
  const { sql, params, max_rows: maxRows, timeout_seconds: seconds, ...place } = given;
  return tableOf(await last(tools, place, [{ query: sql, params, maxRows }], seconds, isReadOnly));
}

/** Several statements in one transaction; returns all results. */
export async function query(
  tools: Toolbox,
  place: Place,
  statements: readonly SqlStatement[],
  { seconds = secondsByDefault, isReadOnly = true }: { readonly seconds?: number; readonly isReadOnly?: boolean } = {},
): Promise<readonly SqlResult[]> {
  const where = tools.inDatabase(place);
  const uri = await connectionOf(tools.reach, await findCompute(tools.reach, undefined, where), where);
  // For this transaction alone. The statement itself cannot lift it: its own clock runs already.
  const bounded = [{ query: `SET LOCAL statement_timeout = '${seconds}s'` }, ...statements];
  return (await runSql(tools.client, uri, bounded, { isReadOnly })).slice(1);
}

async function last(
  tools: Toolbox,
  place: Place,
  statements: readonly SqlStatement[],
  seconds: number,
  isReadOnly: boolean,
): Promise<SqlResult> {
  const result = (await query(tools, place, statements, { seconds, isReadOnly })).at(-1);
  if (result === undefined) throw new CliFailure('there was no result');
  return result;
}

function tableOf({ tag, fields, rows, hasMore, notices }: SqlResult): object {
  const kept = withinSize(rows);
  return {
    command: tag,
    columns: fields.map(({ name }) => name),
    rows: kept,
    has_more: hasMore || kept.length < rows.length,
    ...(notices.length > 0 && { notices: notices.map(({ message }) => message) }),
  };
}

/** Wide rows are cut off before a reply becomes more than anybody can read. */
function withinSize(rows: SqlResult['rows']): SqlResult['rows'] {
  let characters = 0;
  const end = rows.findIndex((row) => {
    characters += JSON.stringify(row).length;
    return characters > charactersMax;
  });
  if (end === 0)
    throw new CliFailure(`a row is larger than ${charactersMax} characters: ask for fewer columns or less text`);
  return end === -1 ? rows : rows.slice(0, end);
}
