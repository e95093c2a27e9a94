/**
 * What may follow on a command line that is not finished: commands, options, their values, and names that the API
 * knows. The scripts for the shells ask this, so that all of them offer the same.
 */
import type { Argument, Command, Option } from 'commander';
import type { ListProjectBranchesReply, ListProjectEndpointsReply } from './generated.ts';
import type { Session } from './session.ts';
import { findProject } from './targets.ts';

/** `words` are those behind `catnap`; the last one is the one that is being typed. */
export async function completions(program: Command, words: readonly string[], session: Session): Promise<string[]> {
  const typed = words.at(-1) ?? '';
  const { command, before, pending } = walk(program, words.slice(0, -1));
  const offered = pending === null ? await wordsFor(command, before, typed, session) : await valuesOf(pending, session);
  return [...new Set(offered)].filter((word) => word.startsWith(typed)).sort();
}

interface Position {
  readonly command: Command;
  /** How many arguments of the command are there already. */
  readonly before: number;
  /** The option whose value comes next. */
  readonly pending: Option | null;
}

function walk(program: Command, words: readonly string[]): Position {
  let command = program;
  let before = 0;
  let pending: Option | null = null;
  for (const word of words) {
    if (pending !== null) {
      pending = null;
    } else if (word.startsWith('-')) {
      const option = optionsOf(command).find(({ long, short }) => word === long || word === short);
      pending = option?.required ? option : null;
    } else {
      const inner = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
      if (inner === undefined) before += 1;
      else command = inner;
    }
  }
  return { command, before, pending };
}

/** Those of the program count behind every command. */
function optionsOf(command: Command): readonly Option[] {
  const own = command.options.filter(({ hidden }) => !hidden);
  return command.parent === null ? own : [...own, ...optionsOf(command.parent)];
}

async function wordsFor(command: Command, before: number, typed: string, session: Session): Promise<string[]> {
  if (typed.startsWith('-')) return optionsOf(command).flatMap(({ long }) => (long ? [long] : []));
  if (command.commands.length > 0) return command.commands.map((one) => one.name()).filter(isShown);
  const argument = command.registeredArguments[before] ?? command.registeredArguments.find(({ variadic }) => variadic);
  return argument === undefined ? [] : valuesOf(argument, session);
}

const isShown = (name: string) => !name.startsWith('_');

async function valuesOf(wanted: Option | Argument, session: Session): Promise<string[]> {
  if (wanted.argChoices !== undefined) return [...wanted.argChoices];
  const name = wanted.name();
  // An API that does not answer, or a key that may not look, is no reason to disturb a person who types.
  return namesOf(name, session).catch(() => []);
}

async function namesOf(name: string, session: Session): Promise<string[]> {
  if (/^project/.test(name)) return namesIn(await session.client.listProjects());
  const isBranch = /^(branch|base|source|parent|replace)/.test(name);
  const isCompute = /compute/.test(name);
  if (!isBranch && !isCompute) return [];
  const { path } = await findProject(session, {});
  const { branches } = await session.client.get<ListProjectBranchesReply>(`${path}/branches`);
  if (!isCompute) return namesIn(branches);
  const { endpoints } = await session.client.get<ListProjectEndpointsReply>(`${path}/endpoints`);
  return [...endpoints.map(({ id }) => id), ...namesIn(branches)];
}

/** A word that a shell would take apart cannot be offered. */
const namesIn = (things: readonly { readonly name: string }[]) =>
  things.map(({ name }) => name).filter((name) => /^[\w./:@+-]+$/.test(name));
