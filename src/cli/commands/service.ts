/** `catnap service`: Catnap as a service of systemd. It writes files and leaves it to a person to start them. */
import type { Command } from 'commander';
import { confirm } from '../kit/confirm.ts';
import { CliFailure } from '../kit/failure.ts';
import type { RunCommand, Session } from '../kit/session.ts';

interface Options {
  readonly user?: string;
  readonly sockets?: boolean;
  readonly print?: boolean;
  readonly yes?: boolean;
}

export function addService(program: Command, run: RunCommand): void {
  const service = program.command('service').description('run Catnap as a service of systemd');
  service
    .command('install')
    .description('write a unit: as root for the machine, else for your own account')
    .option('--user <account>', 'as root: run it as this account, without the rights of root')
    .option('--sockets', 'let systemd keep the ports open, so that clients wait while Catnap is replaced')
    .option('--print', 'print the unit, and write nothing')
    .option('--yes', 'do not ask')
    .action((options: Options) => run((session) => install(session, options)));
}

async function install({ parts, writer }: Session, { user, sockets, print, yes }: Options): Promise<undefined> {
  const plan = await parts.service.plan(user, sockets === true).catch(fail);
  const { unitFile, settingsFile, socket, next, notes } = plan;
  if (print) {
    parts.stdout.write(socket === null ? plan.text : `${plan.text}\n${socket.text}`);
    return;
  }
  if (!yes && !(await confirm(parts, `Write ${unitFile}?`))) throw new CliFailure('nothing was written');
  await parts.service.install(plan).catch(fail);
  writer.record(
    { unitFile, settingsFile, socketFile: socket?.file, next, notes },
    { unitFile: 'unit', settingsFile: 'settings', socketFile: 'sockets' },
  );
  for (const note of notes) writer.remark(note);
  writer.remark(`Next:\n${next.map((line) => `  ${line}`).join('\n')}`);
}

function fail(error: unknown): never {
  throw new CliFailure(error instanceof Error ? error.message : String(error));
}
