/**
 * Code that a tenant plants where Catnap's own sessions might run it: operators, casts, functions, triggers, rules,
 * policies, defaults and settings. Then Catnap does what it does inside tenants' databases. Whatever of it has run, has
 * run with the tenant's own rights.
 */
import { randomUUID } from 'node:crypto';
import type { Bench } from '../../../src/compute/contract/bench.ts';
import { noChange, password, verifier } from '../../../src/compute/contract/bench.ts';
import type { ComputeObservation } from '../../../src/compute/interface/driver.ts';
import { dumpSchema } from '../../../src/compute/schema-dump/dump.ts';

/** Writes down as whom it runs, and takes all that it can get. */
const grab = `
  create function planted.grab() returns boolean language plpgsql as $grab$
  declare attempt text;
  begin
    insert into planted.seen values (session_user, current_user, current_setting('is_superuser'));
    foreach attempt in array array[
      'alter role owner superuser',
      'grant pg_execute_server_program to owner',
      'set role catnap_admin',
      'reset role; alter role owner superuser',
      'copy planted.seen to program ''touch /tmp/catnap-isolation''',
      'create table planted.taken as select * from pg_authid']
    loop
      begin
        execute attempt;
      exception when others then null;
      end;
    end loop;
    return true;
  end $grab$`;

const plants: readonly string[] = [
  'create schema planted',
  'create table planted.seen (session_name text, role_name text, is_superuser text)',
  'grant all on schema planted to public; grant all on planted.seen to public',
  grab,
  'create function planted.on_row() returns trigger language plpgsql as $$ begin perform planted.grab(); return coalesce(new, old); end $$',
  'create function planted.same(text, text) returns boolean language plpgsql as $$ begin return planted.grab(); end $$',
  'create operator planted.= (leftarg = text, rightarg = text, function = planted.same)',
  'create operator public.~~ (leftarg = text, rightarg = text, function = planted.same)',
  'create function public.now() returns timestamptz language plpgsql as $$ begin perform planted.grab(); return clock_timestamp(); end $$',
  'create function public.format(text, text, text) returns text language plpgsql as $$ begin perform planted.grab(); return $1; end $$',
  'create function public.quote_ident(text) returns text language plpgsql as $$ begin perform planted.grab(); return $1; end $$',
  'create function public.pg_get_userbyid(oid) returns name language plpgsql as $$ begin perform planted.grab(); return $1::text; end $$',
  'create table public.pg_class (a int)',
  'create table public.pg_roles (rolname text)',
  'create view public.pg_database as select planted.grab() as datname',
  'create view public.pg_namespace as select planted.grab() as nspname',
  'create table planted.kept (id int default (planted.grab())::int, body text check (planted.grab()))',
  'create table planted.parent (id int primary key); create table planted.child (id int references planted.parent)',
  'create trigger t after insert or update or delete on planted.parent for each row execute function planted.on_row()',
  'create trigger u after truncate on planted.parent for each statement execute function planted.on_row()',
  'alter table planted.parent enable always trigger t; alter table planted.parent enable always trigger u',
  'create rule r as on insert to planted.child do also select planted.grab()',
  'alter table planted.parent enable row level security; alter table planted.parent force row level security',
  'create policy p on planted.parent using (planted.grab())',
  'create materialized view planted.looked as select planted.grab() as a with no data',
  'create index on planted.kept ((body || 1::text)) where body is not null',
  'create domain planted.checked as text check (planted.grab())',
  'create cast (planted.checked as int) with inout as implicit',
  'insert into planted.parent select generate_series(1, 3)',
  "select lo_from_bytea(0, 'large')",
];

const settings = [
  'search_path = planted, public, pg_catalog',
  "role = 'owner'",
  'statement_timeout = 1',
  'default_transaction_read_only = on',
  'row_security = off',
  'check_function_bodies = off',
];

type Found = { readonly leaks: string[]; readonly changes: string[] };

/** How many were planted, and how many of them came to nothing. */
export async function plantAndVisit(
  bench: Bench,
  running: ComputeObservation,
  version: number,
  found: Found,
): Promise<[number, number]> {
  const { driver, ref, adminSecret } = bench;
  let planted = 0;
  for (const text of plants) {
    await bench.query(running, text);
    planted += 1;
  }
  await driver.configure(ref, { ...noChange, roles: [{ name: 'leaver', verifier }] });
  await bench.query(running, 'grant create on schema public to leaver');
  await bench.query(
    running,
    `create table theirs (n int default (planted.grab())::int); create trigger t before insert or update or delete
     on theirs for each row execute function planted.on_row()`,
    { username: 'leaver', password },
  );
  await bench.query(running, settings.map((line) => `alter database app set ${line}`).join('; '));
  planted += settings.length;

  if (running.address === null) throw new Error('it does not run');
  await dumpSchema({ address: running.address, adminSecret, database: 'app', pgVersion: version, programPath: '' });
  const table = { database: 'app', readerName: 'owner', providerProjectId: randomUUID() };
  const user = { id: 'a', display_name: 'Ann', primary_email: 'a@x.test', signed_up_at_millis: 1 };
  const change = (seq: number) => ({ seq, userId: 'a', kind: 'created', user, occurredAt: new Date(seq) }) as const;
  await driver.syncUsers(ref, table, async (position) => (position < 1 ? [change(1)] : []));
  const admin = { username: 'catnap_admin', password: adminSecret, database: 'catnap' };
  await bench.query(running, 'alter database app reset all', admin);
  await bench.query(
    running,
    'create trigger t before insert or update or delete on neon_auth.users_sync for each row execute function planted.on_row()',
  );
  await driver.syncUsers(ref, table, async (position) => (position < 2 ? [change(2)] : []));
  await driver.configure(ref, { ...noChange, dropRoles: ['leaver'] });
  await driver.dropUsers(ref, 'app');

  const [who] = (await bench.query(
    running,
    `select array_agg(rolname::text) as names from pg_roles where rolsuper and rolname <> 'catnap_admin'`,
    admin,
  )) as { names: string[] | null }[];
  if (who?.names) found.changes.push(`${version}: ${who.names.join(', ')} became superuser by planted code`);
  const rows = (await bench.query(running, 'select distinct * from planted.seen')) as {
    session_name: string;
    is_superuser: string;
  }[];
  const ran = rows.filter((row) => row.is_superuser === 'on' || row.session_name === 'catnap_admin');
  for (const row of ran) found.leaks.push(`${version}: planted code ran as ${JSON.stringify(row)}`);
  // The trigger on the table of users runs, as the tenant: without that nothing would show that the plants work.
  if (!rows.some(({ session_name: name }) => name.startsWith('catnap_users_'))) {
    found.changes.push(`${version}: the planted trigger has not run at all`);
  }
  return [planted, planted - ran.length];
}
