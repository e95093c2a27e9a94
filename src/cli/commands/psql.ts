/** `catnap psql` and `catnap connection-string`: a way in for any Postgres client, with psql at hand. */
import { type Command, Option } from 'commander';
import { CliFailure, usageExitCode } from '../kit/failure.ts';
import { asRole, onBranch } from '../kit/options.ts';
import { runPsql } from '../kit/run-psql.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { type AsRole, connectionOf, findCompute } from '../kit/targets.ts';

interface PsqlOptions extends AsRole {
  readonly print?: boolean;
}

interface StringOptions extends AsRole {
  readonly psql?: boolean;
}

const place = ['[branch or compute]', 'id or name (default: the compute of the linked or default branch)'] as const;
const forPsql = ['[psql arguments...]', 'handed to psql; write -- before them'] as const;

export function addPsql(program: Command, run: RunCommand): void {
  asRole(onBranch(program.command('psql').description('open psql on a branch, waking its compute if it naps')))
    .argument(...place)
    .argument(...forPsql)
    .option('--print', 'print the connection string instead; --json does so too')
    .action((_given: string | undefined, _extra: string[], options: PsqlOptions, { args }: Command) =>
      run((session) => openPsql(session, args, options)),
    );
  asRole(
    onBranch(program.command('connection-string').alias('cs').description('print the connection string of a branch')),
  )
    .argument(...place)
    .addOption(new Option('--psql', 'open psql with it').hideHelp())
    // The arguments that --psql takes are as hidden as the option, which neonctl has.
    .allowExcessArguments()
    .action((_given: string | undefined, options: StringOptions, { args }: Command) =>
      run((session) => openPsql(session, args, { ...options, print: options.psql !== true })),
    );
}

async function openPsql(session: Session, words: readonly string[], options: PsqlOptions) {
  const { given, extra } = divide(session, words);
  const endpoint = await findCompute(session, given, options);
  const uri = await connectionOf(session, endpoint, options);
  if (session.format === 'json') {
    const { id, project_id, branch_id } = endpoint;
    session.writer.record({ endpoint_id: id, project_id, branch_id, uri }, { uri: 'uri' });
    return undefined;
  }
  if (!options.print) return runPsql(uri, extra, { environment: session.parts.psqlEnvironment() });
  session.writer.remark(uri);
  return undefined;
}

/** What stands behind `--` is for psql alone: the first word there names no branch. */
function divide({ behindDashes }: Session, words: readonly string[]) {
  const ownCount = Math.max(0, words.length - behindDashes.length);
  const [given, ...tooMany] = words.slice(0, ownCount);
  if (tooMany.length > 0) {
    throw new CliFailure(`too many arguments (${tooMany.join(' ')}): write -- before those for psql`, usageExitCode);
  }
  return { given, extra: words.slice(ownCount) };
}
