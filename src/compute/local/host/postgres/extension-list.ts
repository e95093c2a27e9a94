/**
 * The one list of extensions that owners, who are no superusers, may create, with the reason for each. Postgres runs
 * the script of a `trusted` extension as the superuser on behalf of a database's owner, and a C function has all the
 * rights of the server. So an extension is on it only if its script leaves no opening for objects that the owner has
 * made before, and if none of its functions reads or writes server files, runs programs, opens connections, reads raw
 * pages or returns rows that the caller may not select.
 */

type Reasons = Readonly<Record<string, string>>;

/** Of the embedded build; marked trusted in addition to upstream's own. */
export const embeddedExtensions: Reasons = {
  autoinc: 'a trigger function',
  bloom: 'an index method over ordinary types',
  dict_xsyn: 'text search dictionary; file names are confined to the share directory',
  earthdistance: 'SQL functions over cube, which is trusted',
  insert_username: 'a trigger function',
  moddatetime: 'a trigger function',
  pg_prewarm: 'needs SELECT on the table; useful after a wake',
  pg_stat_statements: 'other roles’ texts stay hidden without pg_read_all_stats',
  pgrowlocks: 'needs SELECT on the table',
  postgres_fdw: 'non-superusers must give a password, and file options are refused to them',
};

/** Of the machine's packages. The scripts in Debian's, install and upgrade, hold definitions: none runs a query. */
export const machineExtensions: Reasons = {
  vector: 'types, operators and index methods; its scripts only create objects of its own',
  hypopg: 'hypothetical indexes are in the memory of one session, and only its planner sees them',
};

const pagesAndLog = 'it reads or changes pages and WAL past every permission';
const monitorsOnly = 'Postgres keeps its functions for superusers and monitoring roles';

/** Known, and kept from owners. The operator can add them all the same. */
export const withheldExtensions: Reasons = {
  file_fdw: 'it reads server files and runs programs',
  adminpack: 'it writes server files',
  pageinspect: pagesAndLog,
  pg_surgery: pagesAndLog,
  pg_walinspect: pagesAndLog,
  pg_logicalinspect: pagesAndLog,
  // libpq 18 knows `sslkeylogfile`, which appends to any file that the server's user may write.
  dblink: 'it takes raw connection strings, which can name server files; postgres_fdw serves instead',
  amcheck: monitorsOnly,
  pg_buffercache: monitorsOnly,
  pg_freespacemap: monitorsOnly,
  pg_visibility: monitorsOnly,
  pgstattuple: monitorsOnly,
  refint: 'it builds SQL from unchecked arguments',
  intagg: 'it is obsolete: Postgres itself has array_agg',
  sslinfo: 'TLS ends at the proxy, so it would know nothing',
  xml2: 'it is deprecated, and hands documents to an unmaintained XSLT library',
  // Its updates of cron.job_run_details look operators up by the search_path that an owner gives the database.
  pg_cron:
    'its scheduler is a superuser session in the owner’s database, and runs no job while the compute sleeps; ' +
    'a scheduler elsewhere that connects wakes the compute',
  postgis:
    'its upgrade scripts, which would run as superuser, were not checked for objects that an owner puts in their way',
  postgis_raster: 'it opens server files and URLs',
  plsh: 'it runs programs on the server',
  orafce: 'its package utl_file reads and writes server files',
};

/** Languages, and what connects types with them. The embedded Postgres has some, and not what they need. */
const languages = /plperl|plpython|pltcl/;

export function whyWithheld(name: string): string {
  if (languages.test(name)) return 'it brings a language that can run programs, or that this machine does not have';
  return (
    withheldExtensions[name] ??
    'it is not on the list of extensions that are safe for owners; CATNAP_EXTENSIONS_ALLOW can add it'
  );
}
