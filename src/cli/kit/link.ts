/**
 * The link of a folder to a project: a small file that later commands read, so that they need no ids. It names things
 * and holds no secrets. It does not name a server either: somebody else's checkout may bring such a file along, and the
 * key must not go where a stranger likes.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CliFailure } from './failure.ts';

export const linkName = '.catnap';

export interface Link {
  /** Where it was found. */
  readonly file: string;
  readonly project: string;
  readonly branch?: string;
  /** The branch is that of the git branch which is checked out. */
  readonly followsGit?: boolean;
  readonly database?: string;
  readonly role?: string;
}

const fields = ['project', 'branch', 'database', 'role'] as const;

/** The nearest link, here or in a folder above. */
export function readLink(folder: string): Link | null {
  for (let place = folder; ; place = dirname(place)) {
    const file = join(place, linkName);
    const text = readIfThere(file);
    if (text !== null) return parseLink(file, text);
    if (place === dirname(place)) return null;
  }
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // A folder of this name, or one that cannot be read, is no link.
    return null;
  }
}

function parseLink(file: string, text: string): Link {
  const content = parse(text);
  const named = fields.filter((field) => content?.[field] !== undefined);
  if (content === null || !named.includes('project') || named.some((field) => typeof content[field] !== 'string')) {
    const advice = 'remove it, or make it anew with `catnap link`';
    throw new CliFailure(`${file} does not link to a project; allowed: ${fields.join(', ')} as texts; ${advice}`, 2);
  }
  const link = { project: '', ...Object.fromEntries(named.map((field) => [field, content[field]])) };
  return followGit({ file, ...link });
}

/** What stands for the git branch in a link. `main` is the one that belongs to the default database branch. */
export const gitLink = (main: string | undefined) => (main === undefined ? '^git' : `^git:${main}`);

/** What git calls it when no branch is checked out. It is not taken for the default branch: that may be in use. */
export const detachedName = 'HEAD';

const usualMains = ['main', 'master'];

function followGit({ branch, ...others }: Link): Link {
  const [isGit, main] = /^\^git(?::(.+))?$/.exec(branch ?? '') ?? [];
  if (isGit === undefined) return { ...others, ...(branch !== undefined && { branch }) };
  const current = checkedOut(dirname(others.file));
  const isMain = (main === undefined ? usualMains : [main]).includes(current);
  return { ...others, followsGit: true, ...(!isMain && { branch: current }) };
}

function checkedOut(folder: string): string {
  try {
    const words = ['-C', folder, 'symbolic-ref', '--short', '-q', detachedName];
    return execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return detachedName;
  }
}

function parse(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}
