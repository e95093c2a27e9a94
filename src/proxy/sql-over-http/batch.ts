/**
 * What one request runs: a statement, a transaction, or a script. A batch is one transaction, which begins and ends
 * here, unless its first statement is a BEGIN: then it is a script that begins and ends its transactions itself. Either
 * way no transaction is open at the end, and a batch that would leave one open fails.
 */
import {
  type ReplyBytes,
  runCommand,
  runOnlyStatement,
  runStatement,
  type ServerSession,
  StatementFailed,
  type StatementResult,
  UnfitStatement,
} from './execute.ts';
import { beginStatement, type SqlBody, type SqlOptions, type SqlStatement, transactionDefaults } from './request.ts';
import { transactionStep } from './transaction-step.ts';

/** The reply's body. */
export async function executeBody(
  server: ServerSession,
  body: SqlBody,
  options: SqlOptions,
  replyBytes: ReplyBytes,
): Promise<string> {
  const run = (statement: SqlStatement) => runStatement(server, statement, options, replyBytes);
  if (body.kind === 'single') {
    const { json, status } = await runOnlyStatement(server, body.statement, options, replyBytes);
    // No later request can end the transaction: it may run on another session.
    if (status !== 'I') throw new UnfitStatement('a transaction needs a batch: send its statements as `queries`');
    return json;
  }
  const { statements } = body;
  const isScript = statements[0] !== undefined && transactionStep(statements[0].query) === 'begin';
  const work = isScript ? runScript : runTransaction;
  return `{"results":[${(await work(server, statements, options, run)).join(',')}]}`;
}

type RunStatement = (statement: SqlStatement) => Promise<StatementResult>;

async function runTransaction(
  server: ServerSession,
  statements: readonly SqlStatement[],
  options: SqlOptions,
  run: RunStatement,
): Promise<string[]> {
  // Before anything runs: what such a statement has committed could not be taken back.
  const end = statements.findIndex(({ query }) => transactionStep(query) === 'end');
  if (end !== -1) throw new UnfitStatement(endsTransaction(end));
  await runCommand(server, beginStatement(options.batch));
  const results: string[] = [];
  try {
    for (const [at, statement] of statements.entries()) {
      const { json, status } = await runAt(at, statement, run);
      results.push(json);
      if (status === 'I') throw new UnfitStatement(endsTransaction(at));
    }
  } catch (thrown) {
    if (thrown instanceof StatementFailed) await runCommand(server, 'ROLLBACK');
    throw thrown;
  }
  await runCommand(server, 'COMMIT');
  return results;
}

/** What a script commits before it fails stays committed, as in psql. */
async function runScript(
  server: ServerSession,
  statements: readonly SqlStatement[],
  options: SqlOptions,
  run: RunStatement,
): Promise<string[]> {
  const defaults = transactionDefaults(options.batch);
  // The session is reset after the request, and these with it.
  if (defaults !== null) await runCommand(server, defaults);
  const results: string[] = [];
  let isOpen = false;
  try {
    for (const [at, statement] of statements.entries()) {
      const { json, status } = await runAt(at, statement, run);
      results.push(json);
      isOpen = status !== 'I';
    }
  } catch (thrown) {
    if (thrown instanceof StatementFailed && isOpen) await runCommand(server, 'ROLLBACK');
    throw thrown;
  }
  if (isOpen) {
    await runCommand(server, 'ROLLBACK');
    throw new UnfitStatement('the last transaction of the batch has no COMMIT or ROLLBACK, and was rolled back');
  }
  return results;
}

async function runAt(at: number, statement: SqlStatement, run: RunStatement): Promise<StatementResult> {
  try {
    return await run(statement);
  } catch (thrown) {
    if (thrown instanceof StatementFailed) thrown.at = at;
    throw thrown;
  }
}

function endsTransaction(at: number): string {
  return (
    `\`queries[${at}]\` ends its transaction: a batch is one transaction by itself. ` +
    'Leave the statement out, or begin the batch with BEGIN'
  );
}
