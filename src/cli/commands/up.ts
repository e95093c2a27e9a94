/** `catnap up`: starts Catnap here and stays until it is stopped. `npm start` runs this. */
import { type Command, InvalidArgumentError } from 'commander';
import type { RunCommand } from '../kit/session.ts';

interface Options {
  readonly roles: readonly string[];
  readonly stopComputes?: boolean;
}

export function addUp(program: Command, roleNames: readonly string[], run: RunCommand): void {
  program
    .command('up')
    .description('start Catnap in this terminal; Ctrl-C stops it and leaves the computes running')
    .option('--roles <names>', `which parts to run, of ${roleNames.join(', ')}`, parseRoles(roleNames), roleNames)
    .option('--stop-computes', 'on the way out, also suspend every compute')
    .action((options: Options) =>
      run(({ parts }) => parts.up({ roles: options.roles, stopComputes: options.stopComputes ?? false })),
    );
}

function parseRoles(roleNames: readonly string[]): (given: string) => readonly string[] {
  return (given) => {
    const asked = given.split(',').map((name) => name.trim());
    const unknown = asked.find((name) => !roleNames.includes(name));
    if (unknown !== undefined) {
      throw new InvalidArgumentError(
        `"${unknown}" is not one of ${roleNames.join(', ')} (separate several with commas).`,
      );
    }
    return roleNames.filter((name) => asked.includes(name));
  };
}
