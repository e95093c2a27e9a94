/** `catnap psql` and `catnap connection-string`: a way in for any Postgres client, with psql at hand. */
import { type Command, Option } from 'commander';
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

export function addPsql(program: Command, run: RunCommand): void {
  asRole(onBranch(program.command('psql').description('open psql on a branch, waking its compute if it naps')))
    .argument(...place)
    .argument('[psql arguments...]', 'handed to psql; write -- before them')
    .option('--print', 'print the connection string instead; --json does so too')
    .action((given: string | undefined, extra: string[], options: PsqlOptions) =>
      run((session) => openPsql(session, given, extra, options)),
    );
  asRole(
    onBranch(program.command('connection-string').alias('cs').description('print the connection string of a branch')),
  )
    .argument(...place)
    .addOption(new Option('--psql', 'open psql with it').hideHelp())
    .action((given: string | undefined, options: StringOptions) =>
      run((session) => openPsql(session, given, [], { ...options, print: options.psql !== true })),
    );
}

async function openPsql(session: Session, given: string | undefined, extra: string[], options: PsqlOptions) {
  const endpoint = await findCompute(session, given, options);
  const uri = await connectionOf(session, endpoint, options);
  if (session.format === 'json') {
    const { id, project_id, branch_id } = endpoint;
    session.writer.record({ endpoint_id: id, project_id, branch_id, uri }, { uri: 'uri' });
    return undefined;
  }
  if (!options.print) return runPsql(uri, extra);
  session.writer.remark(uri);
  return undefined;
}
