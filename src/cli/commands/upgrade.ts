/** `catnap upgrade`: what a newer program would change here, the way back, and newer majors of Postgres. */
import type { Command } from 'commander';
import { confirm } from '../kit/confirm.ts';
import { CliFailure } from '../kit/failure.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { printChecks } from './doctor.ts';
import { addUpgradeMajor } from './upgrade-major.ts';

interface UndoOptions {
  readonly to?: string;
  readonly yes?: boolean;
}

export function addUpgrade(program: Command, run: RunCommand): void {
  const upgrade = program.command('upgrade').description('upgrade Catnap, or undo that; a newer major of Postgres');
  upgrade
    .command('check')
    .description('with the newer program, while the older one runs: say what a start would change; changes nothing')
    .action(() => run(check));
  upgrade
    .command('undo')
    .description('with the newer program, while Catnap is stopped: let the one before start again')
    .option('--to <version>', 'an earlier program, by its version or commit (default: the one before)')
    .option('--yes', 'do not ask')
    .action((options: UndoOptions) => run((session) => undo(session, options)));
  addUpgradeMajor(upgrade, run);
}

async function check(session: Session): Promise<number> {
  return printChecks(session, await session.parts.upgrade.check(), {
    good: 'This program can take over.',
    bad: (failed) => `This program cannot take over yet: ${failed} of these must be put right.`,
  });
}

async function undo({ parts, writer }: Session, { to, yes }: UndoOptions): Promise<undefined> {
  const question = 'Go back? What only the newer Catnap knows (docs/upgrading.md) is deleted.';
  if (!yes && !(await confirm(parts, question))) throw new CliFailure('nothing was changed');
  const { release, migrations } = await parts.upgrade.undo(to, (line) => writer.remark(line)).catch(fail);
  writer.record({ release, migrations }, { release: 'program' });
  writer.remark(migrations.length === 0 ? 'There were no migrations to undo.' : `Undone: ${migrations.join(', ')}`);
  writer.remark(`Install ${release} again and start it.`);
}

function fail(error: unknown): never {
  throw new CliFailure(error instanceof Error ? error.message : String(error));
}
