/** Ways out by files, programs, libraries and languages. */
import { type Escape, refused } from './sql-escape.ts';

const file = '/tmp/catnap-isolation';
const readable = ['/etc/passwd', 'PG_VERSION', 'global/pg_control', '../../secret.key', 'postgresql.auto.conf'];
const signature = '(internal) returns int';

export const fileEscapes: readonly Escape[] = [
  ...readable.flatMap((path) => [
    refused(`select pg_read_file('${path}')`),
    refused(`select pg_read_file('${path}', 0, 10)`),
    refused(`select pg_read_file('${path}', 0, 10, true)`),
    refused(`select pg_read_binary_file('${path}')`),
    refused(`select pg_stat_file('${path}')`),
    refused(`select pg_stat_file('${path}', true)`),
    refused(`copy t from '${path}'`),
    refused(`select lo_import('${path}')`),
    refused(`select lo_import('${path}', 4711)`),
  ]),
  ...['.', '/', '/etc', 'pg_wal', 'base', '..'].flatMap((path) => [
    refused(`select pg_ls_dir('${path}')`),
    refused(`select pg_ls_dir('${path}', true, true)`),
  ]),
  ...[
    'pg_ls_waldir()',
    'pg_ls_logdir()',
    'pg_ls_tmpdir()',
    'pg_ls_archive_statusdir()',
    'pg_ls_logicalmapdir()',
    'pg_ls_logicalsnapdir()',
    "pg_ls_replslotdir('x')",
    'pg_show_all_file_settings()',
    'pg_hba_file_rules()',
    'pg_ident_file_mappings()',
    'pg_get_backend_memory_contexts()',
    'pg_get_shmem_allocations()',
  ].map((call) => refused(`select * from ${call}`)),
  refused(`select pg_current_logfile()`),
  refused(`copy t to '${file}'`),
  refused(`copy (select 1) to '${file}'`),
  refused(`copy (select 1) to '${file}' (format binary)`),
  refused(`copy t from '${file}'`),
  ...['id', 'sh -c id', `touch ${file}`, '/bin/true'].flatMap((program) => [
    refused(`copy t from program '${program}'`),
    refused(`copy t to program '${program}'`),
    refused(`copy (select 1) to program '${program}'`),
  ]),
  refused(`select lo_export(lo_from_bytea(0, 'x'), '${file}')`),
  refused(`do $$ begin execute 'copy t from program ''id'''; end $$`),
  refused(`create tablespace s location '/tmp'`),
  refused(`create tablespace s location ''`),
  refused(`alter tablespace pg_default owner to current_user`),
  refused(`alter tablespace pg_global rename to s`),
  refused(`create table s (a int) tablespace pg_global`, ['22023', '42501']),
  refused(`drop tablespace pg_default`),
  ...['libc', '/lib/x86_64-linux-gnu/libc.so.6', '$libdir/dblink', '$libdir/file_fdw', '/tmp/x.so'].flatMap(
    (library) => [
      refused(`load '${library}'`),
      refused(`create function s() returns int language c as '${library}', 'getpid'`),
    ],
  ),
  refused(`load '$libdir/plugins/x'`, ['58P01', '42501']),
  refused(`create function s${signature} language internal as 'int4in'`),
  refused(`create function s(text) returns text language internal as 'pg_read_file_all'`),
  refused(`create procedure s() language c as 'libc', 'exit'`),
  refused(`alter function pg_read_file(text) security definer`),
  refused(`alter function pg_read_file(text) owner to current_user`),
  refused(`grant execute on function pg_read_file(text) to current_user; select pg_read_file('PG_VERSION')`),
  refused(`create or replace function pg_catalog.pg_read_file(text) returns text language sql as 'select 1::text'`),
  refused(`create function pg_catalog.planted() returns int language sql as 'select 1'`),
  refused(`create table pg_catalog.planted (a int)`),
  ...['plpython3u', 'plperlu', 'pltclu', 'plperl', 'pltcl'].flatMap((language) => [
    refused(`create language ${language}`, ['0A000', '42501']),
    refused(`create extension ${language}`, ['0A000', '42501']),
  ]),
  refused(`create language s handler plpgsql_call_handler`),
  refused(`create trusted language s handler plpgsql_call_handler`),
  refused(`alter language c owner to current_user`),
  refused(`alter language internal rename to s`),
  refused(`grant usage on language c to current_user`, ['42501', '42809']),
  refused(`update pg_language set lanpltrusted = true`),
  ...[
    'adminpack',
    'amcheck',
    'dblink',
    'file_fdw',
    'pageinspect',
    'pg_buffercache',
    'pg_freespacemap',
    'pg_logicalinspect',
    'pg_surgery',
    'pg_visibility',
    'pg_walinspect',
    'pgstattuple',
    'refint',
    'sslinfo',
    'xml2',
    '../../../tmp/x',
  ].map((name) => refused(`create extension "${name}"`, ['0A000', '42501', '42602', '22023'])),
  refused(`create type s (input = int4in, output = int4out)`, ['42501', '42704', '42883', '42P17']),
  refused(`create type s`),
  refused(`create operator class s default for type int using btree as operator 1 <`),
  refused(`create operator family s using btree`),
  refused(`create access method s type index handler bthandler`),
  refused(
    `create text search parser s (start = prsd_start, gettoken = prsd_nexttoken, end = prsd_end, lextypes = prsd_lextype)`,
  ),
  refused(`create text search template s (lexize = dsimple_lexize)`),
  refused(`create text search dictionary s (template = ispell, dictfile = '../../../etc/passwd')`, [
    '22023',
    'F0000',
    '42501',
  ]),
  refused(`create text search dictionary s (template = synonym, synonyms = '/etc/passwd')`, [
    '22023',
    'F0000',
    '42501',
  ]),
  // A type in the schema of an extension, whose input function would run while the extension's script is read.
  ...['', "version '1.1'"].map((version) =>
    refused(
      `create extension cube schema public; create schema s;
       create function s.run(int) returns bool language plpgsql as $$ begin perform pg_read_file('PG_VERSION'); end $$;
       create domain s.checked as int check (s.run(value)); create type s.cube as (a s.checked);
       create function s.cube_is_point(s.cube) returns bool language sql as 'select true';
       create function s.cube_dim(s.cube) returns int language sql as 'select 1';
       create function s.cube_distance(s.cube, s.cube) returns float8 language sql as 'select 1.0::float8';
       create extension earthdistance schema s ${version}; select pg_read_file('PG_VERSION')`,
      ['42P13', '42501'],
    ),
  ),
  refused(`create foreign data wrapper s`),
  refused(`create foreign data wrapper s handler postgres_fdw_handler`, ['42501', '42883']),
  refused(`create transform for int language sql (from sql with function int4in(internal))`, [
    '42501',
    '42883',
    '42P17',
  ]),
  refused(`create cast (text as bytea) without function`),
  refused(`create conversion pg_catalog.s for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1`),
  refused(`create collation s (provider = libc, locale = '../../tmp')`, ['22023', '42501']),
  refused(`import foreign schema s from server s into public`, ['42704']),
];
