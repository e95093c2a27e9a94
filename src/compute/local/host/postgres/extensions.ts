/**
 * Puts the list of extensions into our copy of the embedded binaries: what is on it is marked trusted, and what is not
 * trusted is removed, so that everything in pg_available_extensions can be created. Binaries given by
 * `CATNAP_PG_BIN_<major>` are left as they are; there only upstream's own trust counts.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { embeddedExtensions } from './extension-list.ts';

const trustedNames = Object.keys(embeddedExtensions);

/** These need a Perl, Python or Tcl of the machine that the binaries were built on, and fail to load. */
const unloadable = /plperl|plpython|pltcl/;

/** A foreign-data wrapper belongs to the superuser whose script made it; without this an owner could not use it. */
const scriptAdditions: Readonly<Record<string, string>> = {
  'postgres_fdw--1.0.sql': '\nGRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO pg_database_owner;\n',
};

/** Part of a build's name: changed rules make a new build instead of changing one that is in use. */
export const extensionRules = JSON.stringify([trustedNames, String(unloadable), scriptAdditions]);

export async function curateExtensions(directory: string): Promise<void> {
  const files = await readdir(directory);
  for (const file of files.filter((name) => name.endsWith('.control'))) {
    const extension = file.slice(0, -'.control'.length);
    const path = join(directory, file);
    const control = await readFile(path, 'utf8');
    if (unloadable.test(extension)) await removeExtension(directory, extension, files);
    else if (trustedNames.includes(extension)) await writeFile(path, trusted(control));
    else if (!/^\s*trusted\s*=\s*true/m.test(control)) await removeExtension(directory, extension, files);
  }
  for (const [file, addition] of Object.entries(scriptAdditions)) {
    if (files.includes(file)) await writeFile(join(directory, file), addition, { flag: 'a' });
  }
}

export function trusted(control: string): string {
  return `${control.replace(/^\s*trusted\s*=.*$/gm, '').trimEnd()}\ntrusted = true\n`;
}

/** The library stays: only a superuser can load it, and two extensions may share it. */
async function removeExtension(directory: string, extension: string, files: readonly string[]): Promise<void> {
  const own = files.filter((file) => file === `${extension}.control` || file.startsWith(`${extension}--`));
  for (const file of own) await rm(join(directory, file), { force: true });
}
