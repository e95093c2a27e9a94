/**
 * Which extensions an owner, who is not a superuser, may create in our copy of the embedded binaries. Postgres runs the
 * script of a `trusted` extension as the superuser on behalf of a database's owner, so the list is short and each entry
 * has a reason. Extensions that are not trusted are removed: everything in pg_available_extensions can be created.
 * Binaries given by `CATNAP_PG_BIN_<major>` are left as they are; there only upstream's own trust counts.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Marked trusted in addition to upstream's own. None reads or writes server files, runs programs, reads raw
 * pages or returns rows that the caller may not select.
 *
 * Left out on purpose:
 * - file_fdw, adminpack: server files; pageinspect, pg_surgery, pg_walinspect, pg_logicalinspect: pages and WAL,
 *   past every permission;
 * - dblink: takes a raw connection string, and libpq 18 knows `sslkeylogfile`, which appends to any file that the
 *   server's user may write. postgres_fdw checks each option, so it serves instead;
 * - amcheck, pg_buffercache, pg_freespacemap, pg_visibility, pgstattuple: their functions are revoked from everybody
 *   but superusers and monitoring roles, so an owner could create them and use nothing;
 * - refint: builds SQL from unchecked arguments; intagg, sslinfo: nothing to offer on a modern server behind a proxy;
 * - xml2: deprecated, and hands tenants' documents to an unmaintained XSLT library.
 */
export const trustedExtensions: readonly string[] = [
  'autoinc', // a trigger function
  'bloom', // an index method over ordinary types
  'dict_xsyn', // text search dictionary; file names are confined to the share directory
  'earthdistance', // SQL functions over cube, which is trusted
  'insert_username', // a trigger function
  'moddatetime', // a trigger function
  'pg_prewarm', // needs SELECT on the table; useful after a wake
  'pg_stat_statements', // other roles' texts stay hidden without pg_read_all_stats
  'pgrowlocks', // needs SELECT on the table
  'postgres_fdw', // non-superusers must give a password, and file options are refused to them
];

/** These need a Perl, Python or Tcl of the machine that the binaries were built on, and fail to load. */
const unloadable = /plperl|plpython|pltcl/;

/** A foreign-data wrapper belongs to the superuser whose script made it; without this an owner could not use it. */
const scriptAdditions: Readonly<Record<string, string>> = {
  'postgres_fdw--1.0.sql': '\nGRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO pg_database_owner;\n',
};

/** Part of a build's name: changed rules make a new build instead of changing one that is in use. */
export const extensionRules = JSON.stringify([trustedExtensions, String(unloadable), scriptAdditions]);

export async function curateExtensions(directory: string): Promise<void> {
  const files = await readdir(directory);
  for (const file of files.filter((name) => name.endsWith('.control'))) {
    const extension = file.slice(0, -'.control'.length);
    const path = join(directory, file);
    const control = await readFile(path, 'utf8');
    if (unloadable.test(extension)) await removeExtension(directory, extension, files);
    else if (trustedExtensions.includes(extension)) await writeFile(path, trusted(control));
    else if (!/^\s*trusted\s*=\s*true/m.test(control)) await removeExtension(directory, extension, files);
  }
  for (const [file, addition] of Object.entries(scriptAdditions)) {
    if (files.includes(file)) await writeFile(join(directory, file), addition, { flag: 'a' });
  }
}

function trusted(control: string): string {
  return `${control.replace(/^\s*trusted\s*=.*$/gm, '').trimEnd()}\ntrusted = true\n`;
}

/** The library stays: only a superuser can load it, and two extensions may share it. */
async function removeExtension(directory: string, extension: string, files: readonly string[]): Promise<void> {
  const own = files.filter((file) => file === `${extension}.control` || file.startsWith(`${extension}--`));
  for (const file of own) await rm(join(directory, file), { force: true });
}
