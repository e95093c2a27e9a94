/**
 * How a person calls this program: `catnap` where that is on the path, `npx` with the package where npx runs it from a
 * file, else `npx catnap`, as in a checkout.
 */
import { accessSync, constants, readFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export type CommandName = 'catnap' | 'npx catnap' | `npx --yes file:${string}`;

export function commandName(programPath: string, file = fileURLToPath(import.meta.url)): CommandName {
  // npm puts the programs of a project onto the path of what it starts; the person's own shell does not have them.
  const folders = programPath
    .split(':')
    .filter((folder) => isAbsolute(folder) && !/\bnode_modules\/\.bin\/?$/.test(folder));
  if (folders.some((folder) => isProgram(join(folder, 'catnap')))) return 'catnap';
  const packed = packageOfNpx(file);
  // With `file:`, because npx runs a file that is named by a path alone as if it were a program.
  return packed === null ? 'npx catnap' : `npx --yes file:${shellQuote(packed)}`;
}

/** Messages name commands between backticks, as `catnap up`. */
export function asCalledHere(text: string, name: CommandName): string {
  // A function, because a path may have a `$`.
  return text.replaceAll(/`catnap(?=[ `])/g, () => `\`${name}`);
}

export function shellQuote(path: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/**
 * The file that npx has installed into its cache, where the program runs from there. `npx catnap` would not find it: it
 * would fetch whatever a registry has under that name.
 */
function packageOfNpx(file: string): string | null {
  const [, folder] = /^(.*\/_npx\/[^/]+)\/node_modules\/catnap\//.exec(file) ?? [];
  if (folder === undefined) return null;
  try {
    const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const [, path] = /^file:(.+)$/.exec(dependencies.catnap) ?? [];
    return path === undefined ? null : resolve(folder, path);
  } catch {
    // The cache is npm's own, and may look different one day.
    return null;
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
