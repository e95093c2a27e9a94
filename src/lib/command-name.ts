/** How a person calls this program: `catnap` where that is on the path, else `npx catnap`, as in a checkout. */
import { accessSync, constants } from 'node:fs';
import { isAbsolute, join } from 'node:path';

export type CommandName = 'catnap' | 'npx catnap';

export function commandName(programPath: string): CommandName {
  // npm puts the programs of a project onto the path of what it starts; the person's own shell does not have them.
  const folders = programPath
    .split(':')
    .filter((folder) => isAbsolute(folder) && !/\bnode_modules\/\.bin\/?$/.test(folder));
  return folders.some((folder) => isProgram(join(folder, 'catnap'))) ? 'catnap' : 'npx catnap';
}

/** Messages name commands between backticks, as `catnap up`. */
export function asCalledHere(text: string, name: CommandName): string {
  return text.replaceAll(/`catnap(?=[ `])/g, `\`${name}`);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
