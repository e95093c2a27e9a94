/** Finds the extensions that folders of the machine hold, as packages lay them out. Reads, and judges nothing. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExtensionSettings } from '../../../../lib/postgres-settings.ts';

/** Where the files of extensions are: control files and scripts, and libraries. */
export interface ExtensionFolders {
  readonly scripts: string;
  readonly libraries: string;
}

export interface FoundExtension {
  readonly name: string;
  readonly folders: ExtensionFolders;
  /** Text of its control file. */
  readonly control: string;
  readonly version: string | null;
  readonly comment: string;
  /** Names of other extensions that it needs. */
  readonly requires: readonly string[];
  /** Its script runs with the rights of the caller, who needs no trust for it. */
  readonly needsNoSuperuser: boolean;
  /** File names in `folders.scripts`, without the control file. */
  readonly scripts: readonly string[];
  /** File names in `folders.libraries`. */
  readonly libraries: readonly string[];
}

/** Debian and Ubuntu, also of PGDG; then PGDG on the relatives of Red Hat. */
export function extensionFoldersOf(major: number, { roots }: Pick<ExtensionSettings, 'roots'>): ExtensionFolders[] {
  return (roots[major] ?? ['/']).flatMap((root) => [
    {
      scripts: join(root, 'usr/share/postgresql', String(major), 'extension'),
      libraries: join(root, 'usr/lib/postgresql', String(major), 'lib'),
    },
    { scripts: join(root, `usr/pgsql-${major}/share/extension`), libraries: join(root, `usr/pgsql-${major}/lib`) },
  ]);
}

export const foldersInTree = (tree: string): ExtensionFolders => ({
  scripts: join(tree, 'share', 'postgresql', 'extension'),
  libraries: join(tree, 'lib', 'postgresql'),
});

/** Of several that have an extension the first wins. Sorted by name. */
export async function findExtensions(all: readonly ExtensionFolders[]): Promise<FoundExtension[]> {
  const found = new Map<string, FoundExtension>();
  for (const folders of all) {
    const files = (await readdir(folders.scripts).catch(() => [])).sort();
    // A control file with two dashes in its name belongs to one version of an extension.
    for (const file of files.filter((name) => name.endsWith('.control') && !name.includes('--'))) {
      const name = file.slice(0, -'.control'.length);
      const read = found.has(name) ? null : await readExtension(name, folders, files);
      if (read !== null) found.set(name, read);
    }
  }
  return [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Null for a link that leads nowhere, which a removed package can leave. */
async function readExtension(
  name: string,
  folders: ExtensionFolders,
  files: readonly string[],
): Promise<FoundExtension | null> {
  const control = await readFile(join(folders.scripts, `${name}.control`), 'utf8').catch(() => null);
  if (control === null) return null;
  const scripts = files.filter((file) => file.startsWith(`${name}--`));
  return {
    name,
    folders,
    control,
    version: controlValue(control, 'default_version'),
    comment: controlValue(control, 'comment') ?? '',
    requires: (controlValue(control, 'requires') ?? '').split(',').flatMap((one) => one.trim() || []),
    needsNoSuperuser: /^(false|off|no|0)$/i.test(controlValue(control, 'superuser') ?? ''),
    scripts,
    libraries: (await libraryNames(control, folders, scripts)).map((library) => `${library}.so`),
  };
}

/** Scripts that name a library themselves are read only where the control file names none: they can be large. */
async function libraryNames(control: string, folders: ExtensionFolders, scripts: readonly string[]): Promise<string[]> {
  const named = controlValue(control, 'module_pathname');
  if (named !== null) return [named.replace(/^\$libdir\//, '')];
  const texts = await Promise.all(scripts.map((script) => readFile(join(folders.scripts, script), 'utf8')));
  const names = texts.flatMap((text) => [...text.matchAll(/'\$libdir\/([A-Za-z0-9_.-]+)'/g)].map((match) => match[1]));
  return [...new Set(names)].filter((name) => name !== undefined);
}

/** The last line for a name wins, as in any configuration file of Postgres. */
export function controlValue(control: string, name: string): string | null {
  const line = control.match(new RegExp(`^\\s*${name}\\s*=?\\s*(?:'(?:[^']|'')*'|[^\\s#']+)`, 'gim'))?.at(-1);
  const value = line?.replace(new RegExp(`^\\s*${name}\\s*=?\\s*`, 'i'), '');
  return value?.replace(/^'(.*)'$/s, '$1').replaceAll("''", "'") ?? null;
}
