/** `catnap sql`: runs one statement on a branch, waking its compute, without a Postgres client on this machine. */
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import { CliFailure, usageExitCode } from '../kit/failure.ts';
import { asRole, onBranch } from '../kit/options.ts';
import { runSql, type SqlResult } from '../kit/run-sql.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { type AsRole, connectionOf, findCompute } from '../kit/targets.ts';

interface Options extends AsRole {
  readonly file?: string;
  readonly param: readonly string[];
  readonly readOnly?: boolean;
}

export function addSql(program: Command, run: RunCommand): void {
  asRole(onBranch(program.command('sql').description('run one statement on a branch, waking its compute')))
    .argument('[statement]', 'the statement; without one it is read from the standard input')
    .option('-f, --file <path>', 'read the statement from a file')
    .option('-p, --param <value>', 'a value for $1, $2 and so on; once for each', collect, [])
    .option('--read-only', 'in a transaction that cannot write')
    .action((statement: string | undefined, options: Options) => run((session) => runOne(session, statement, options)));
}

const collect = (value: string, before: readonly string[]) => [...before, value];

async function runOne(session: Session, given: string | undefined, options: Options): Promise<undefined> {
  const query = await statementOf(session, given, options.file);
  const uri = await connectionOf(session, await findCompute(session, undefined, options), options);
  const isJson = session.format === 'json';
  const [result] = await runSql(session.client, uri, [{ query, params: options.param }], {
    isReadOnly: options.readOnly ?? false,
    asText: !isJson,
  });
  if (result === undefined) throw new CliFailure('there was no result');
  for (const { severity = 'NOTICE', message } of result.notices)
    session.parts.stderr.write(`${severity}: ${message}\n`);
  show(session, result);
}

function show({ writer, format }: Session, { fields, rows, tag }: SqlResult): void {
  if (format === 'json') {
    // Where two columns share a name, the second one counts, as in the drivers.
    const objects = rows.map((row) => Object.fromEntries(fields.map(({ name }, at) => [name, row[at]])));
    writer.list(objects, {}, '');
  } else if (fields.length === 0) {
    writer.remark(tag);
  } else {
    const columns = Object.fromEntries(fields.map(({ name }, at) => [String(at), name]));
    writer.list<Record<string, unknown>>(rows.map(byPlace), columns, '(no rows)');
  }
}

/** Columns may share a name, but not a place. */
function byPlace(row: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(row.map((value, at) => [String(at), value]));
}

async function statementOf({ parts }: Session, given: string | undefined, file: string | undefined): Promise<string> {
  if (given !== undefined && file !== undefined) {
    throw new CliFailure('a statement and --file: one of them is enough', usageExitCode);
  }
  if (given !== undefined) return given;
  if (file !== undefined) {
    return readFile(file, 'utf8').catch((error: Error) => {
      throw new CliFailure(`${file} cannot be read: ${error.message}`);
    });
  }
  if (parts.stdin.isTTY) throw new CliFailure('there is no statement: write one behind `catnap sql`', usageExitCode);
  return readAll(parts.stdin);
}
