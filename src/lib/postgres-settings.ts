/**
 * What the machine has of Postgres: binaries of other builds, where extensions are looked for, and which of those the
 * operator adds to Catnap's own list.
 */
import { isAbsolute } from 'node:path';
import { ConfigError, type Environment, isSet } from './config-values.ts';

export interface ExtensionSettings {
  /** Folders with `usr/…` below them, by major; empty for nowhere. A major that is missing has the usual places. */
  readonly roots: Readonly<Record<number, readonly string[]>>;
  /** Extensions that owners may create although Catnap's list does not have them. */
  readonly allowed: readonly string[];
}

const knownMajors = [14, 15, 16, 17, 18];
const namePattern = /^[a-z0-9_][a-z0-9_-]{0,62}$/;
const rootsForm = 'off, or absolute paths of folders with usr/share/postgresql and usr/lib/postgresql, separated by :';

export function readExtensionSettings(env: Environment, majors: readonly number[]): ExtensionSettings {
  const roots: Record<number, readonly string[]> = {};
  for (const [name, value] of Object.entries(env)) {
    const match = /^CATNAP_EXTENSIONS_(\d.*)$/.exec(name);
    if (!match || !value) continue;
    const major = Number(match[1]);
    if (!majors.includes(major)) throw new ConfigError(name, value, `embedded majors: ${majors.join(', ')}`);
    const folders = value === 'off' ? [] : value.split(':');
    if (!folders.every((folder) => isAbsolute(folder))) throw new ConfigError(name, value, rootsForm);
    roots[major] = folders;
  }
  return { roots, allowed: readAllowed(env) };
}

function readAllowed(env: Environment): readonly string[] {
  if (!isSet(env, 'CATNAP_EXTENSIONS_ALLOW')) return [];
  const value = env.CATNAP_EXTENSIONS_ALLOW ?? '';
  const names = value.split(',').map((name) => name.trim());
  if (names.every((name) => namePattern.test(name))) return names;
  throw new ConfigError('CATNAP_EXTENSIONS_ALLOW', value, 'names of extensions, separated by commas');
}

/** By major: the folders that `CATNAP_PG_BIN_<major>` names. */
export function readPgBin(env: Environment): Record<number, string> {
  const found: Record<number, string> = {};
  for (const [name, value] of Object.entries(env)) {
    const match = /^CATNAP_PG_BIN_(.*)$/.exec(name);
    if (!match || !value) continue;
    const major = Number(match[1]);
    if (!knownMajors.includes(major)) throw new ConfigError(name, value, `majors ${knownMajors.join(', ')}`);
    if (!isAbsolute(value))
      throw new ConfigError(name, value, 'an absolute path of a directory that holds postgres and initdb');
    found[major] = value;
  }
  return found;
}
