/** Options that several commands have, each under one name and with one meaning. */
import { type Command, InvalidArgumentError, Option } from 'commander';

export const projectOption = [
  '--project <project>',
  'id or name of the project (default: that of the folder’s link, or the only one)',
] as const;

/** `--project`, and the name that neonctl has for it. */
export function inProject(command: Command): Command {
  return command.option(...projectOption).addOption(new Option('--project-id <project>').hideHelp());
}

export function onBranch(command: Command): Command {
  return inProject(command).option(
    '--branch <branch>',
    'id or name of the branch (default: that of the folder’s link, or the default branch)',
  );
}

/** Which database, and as whom. */
export function asRole(command: Command): Command {
  return command
    .option('--database <name>', 'database (default: that of the folder’s link, or the oldest)')
    .option('--role <name>', 'role (default: that of the folder’s link, or the owner of the database)')
    .option('--pooled', 'go through the pooler')
    .addOption(new Option('--database-name <name>').hideHelp())
    .addOption(new Option('--role-name <name>').hideHelp());
}

export interface Waiting {
  readonly wait: boolean;
}

export function withWait(command: Command): Command {
  return command.option('--no-wait', 'return at once, and leave the work to Catnap');
}

/** The name may stand by itself, or behind `--name`, as neonctl has it. */
export function withName(command: Command, noun: string): Command {
  return command.argument('[name]', `name of the ${noun}`).addOption(new Option('--name <name>').hideHelp());
}

export interface Named {
  readonly name?: string | undefined;
}

/** A moment as people write it: an LSN has a slash, anything else is a time. */
export function momentOf(at: string | undefined): { readonly lsn?: string; readonly timestamp?: string } {
  if (at === undefined) return {};
  return at.includes('/') ? { lsn: at } : { timestamp: at };
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** -1 is never. */
export function napSeconds(text: string): number {
  if (!/^(-1|\d{1,7})$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds, or -1.');
  return Number(text);
}

/** A fixed size, or a range such as 0.25-2. */
export function computeSize(text: string): { readonly min: number; readonly max: number } {
  const [, min = '', max = min] = /^(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?$/.exec(text) ?? [];
  if (min === '') throw new InvalidArgumentError('A size is a number of compute units, or a range such as 0.25-2.');
  return { min: Number(min), max: Number(max) };
}
