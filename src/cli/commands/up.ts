/** `catnap up`: starts Catnap here and runs until it is stopped. `npm start` runs this. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { RunCommand } from '../kit/session.ts';

interface Options {
  readonly processes: readonly string[];
  readonly roles?: readonly string[];
  readonly stopComputes?: boolean;
}

export function addUp(program: Command, processNames: readonly string[], run: RunCommand): void {
  const parse = parseNames(processNames);
  program
    .command('up')
    .description('start Catnap in this terminal; Ctrl-C stops it and leaves the computes running')
    .option('--processes <names>', `which processes to run, of ${processNames.join(', ')}`, parse, processNames)
    // The option's original name.
    .addOption(new Option('--roles <names>').argParser(parse).hideHelp())
    .option('--stop-computes', 'on the way out, also suspend every compute')
    .action(({ processes, roles, stopComputes = false }: Options) =>
      run(({ parts }) => parts.up({ processes: roles ?? processes, stopComputes })),
    );
}

function parseNames(processNames: readonly string[]): (given: string) => readonly string[] {
  return (given) => {
    const asked = given.split(',').map((name) => name.trim());
    const unknown = asked.find((name) => !processNames.includes(name));
    if (unknown !== undefined) {
      throw new InvalidArgumentError(
        `"${unknown}" is not one of ${processNames.join(', ')} (separate several with commas).`,
      );
    }
    return processNames.filter((name) => asked.includes(name));
  };
}
