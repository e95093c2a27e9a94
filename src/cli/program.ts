/** The command line: which commands there are, the options they share, and how a run becomes an exit code. */
import { Command, CommanderError, Option } from 'commander';
import { addBackup } from './commands/backup.ts';
import { addBranches } from './commands/branches.ts';
import { addCompletion } from './commands/completion.ts';
import { addComputes } from './commands/computes.ts';
import { addDoctor } from './commands/doctor.ts';
import { addEject } from './commands/eject.ts';
import { addGit } from './commands/git.ts';
import { addImport } from './commands/import.ts';
import { addKeys } from './commands/keys.ts';
import { addKubernetes } from './commands/kubernetes.ts';
import { addLink, addOpen } from './commands/link.ts';
import { addMcp } from './commands/mcp.ts';
import { addMove } from './commands/move.ts';
import { addOperations } from './commands/operations.ts';
import { addOutbox } from './commands/outbox.ts';
import { addPlan } from './commands/plan.ts';
import { addProjects } from './commands/projects.ts';
import { addPsql } from './commands/psql.ts';
import { addRecovery } from './commands/recovery.ts';
import { addRestore } from './commands/restore.ts';
import { addDatabases, addRoles } from './commands/roles.ts';
import { addService } from './commands/service.ts';
import { addSnapshots } from './commands/snapshots.ts';
import { addSql } from './commands/sql.ts';
import { addStatus } from './commands/status.ts';
import { addStorage } from './commands/storage.ts';
import { addUp } from './commands/up.ts';
import { addUpgrade } from './commands/upgrade.ts';
import { CliFailure, usageExitCode } from './kit/failure.ts';
import type { CliParts } from './kit/parts.ts';
import { openSession, type RunCommand, type SharedOptions } from './kit/session.ts';
import { outputFormats } from './kit/writer.ts';

/** In the order of the help: what people do every day, then what they do to an installation. */
const commands = [
  addStatus,
  addProjects,
  addBranches,
  addComputes,
  addDatabases,
  addRoles,
  addOperations,
  addConnections,
  addImport,
  addMove,
  addEject,
  addSnapshots,
  addRecovery,
  addLink,
  addGit,
  addMcp,
  addKeys,
  addPlan,
  addOutbox,
  addDoctor,
  addService,
  addUpgrade,
  addStorage,
  addBackup,
  addKubernetes,
  addRestore,
  addCompletion,
];

function addConnections(program: Command, run: RunCommand): void {
  addPsql(program, run);
  addSql(program, run);
  addOpen(program, run);
}

/** `args` are the words after the program's name. Failures that the user cannot fix are thrown. */
export async function runCli(args: readonly string[], parts: CliParts): Promise<number> {
  let exitCode = 0;
  const program = newProgram(parts);
  const run: RunCommand = async (work) => {
    exitCode = (await work(openSession(parts, program.opts<SharedOptions>(), args))) ?? 0;
  };
  addUp(program, parts.processNames, run);
  for (const add of commands) add(program, run);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Help and version end this way too, with 0; commander has already printed.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
    if (!(error instanceof CliFailure)) throw error;
    parts.stderr.write(`catnap: ${parts.asCalledHere(error.message)}\n`);
    return error.exitCode;
  }
}

function newProgram(parts: CliParts): Command {
  const format = new Option('--output <format>', 'how to print results').choices(outputFormats).default('table');
  return new Command('catnap')
    .description('Self-hosted serverless Postgres: projects, branches and computes that nap.')
    .version(parts.version, '-V, --version', 'print the version')
    .addOption(format)
    .option('--json', 'short for --output json')
    .option('--api-url <url>', `where Catnap listens (default: ${parts.url})`)
    .option('--api-key <key>', 'API key (default: CATNAP_API_KEY, else the file api-key in the data home)')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .showHelpAfterError('(add --help to see what there is)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void parts.stdout.write(text),
      writeErr: (text) => void parts.stderr.write(text.replace(/^error: /, 'catnap: ')),
    });
}
