/**
 * Keeps the rows of a ground's project aside and puts them back, in one round trip each: to make the same project again
 * would take a hundred statements. The tables are found in the schema, so that one that is added later is kept too.
 */
import { schemaName } from '../../../src/db/client.ts';
import { type Client, timeSchema } from './lent-connections.ts';

/** Those whose rows go when a project goes, parents first; and what commands remember of themselves. */
async function listTables(sql: Client): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    with recursive owned (id, depth) as (
      select 'projects'::regclass::oid, 0
      union
      select c.conrelid, o.depth + 1 from pg_constraint c join owned o on c.confrelid = o.id
      where c.contype = 'f' and c.conrelid <> c.confrelid and o.depth < 20)
    select c.relname as name from owned o join pg_class c on c.oid = o.id group by c.relname
    order by max(o.depth), c.relname`;
  return [...rows.map(({ name }) => name), 'idempotency_keys'];
}

export async function prepareKeeping(sql: Client): Promise<void> {
  const tables = (await listTables(sql)).map((name) => ({
    from: `${schemaName}.${name}`,
    kept: `${timeSchema}.kept_${name}`,
  }));
  const each = (write: (table: (typeof tables)[number]) => string) => tables.map(write).join('\n');
  await sql.unsafe(`
    ${each(({ from, kept }) => `create unlogged table ${kept} (like ${from});`)}
    create procedure ${timeSchema}.remove_rows() language plpgsql as $$ begin
      delete from ${schemaName}.projects;
      delete from ${schemaName}.idempotency_keys;
    end $$;
    create procedure ${timeSchema}.keep_rows() language plpgsql as $$ begin
      ${each(({ from, kept }) => `delete from ${kept}; insert into ${kept} select * from ${from};`)}
    end $$;
    -- Some rows have never gone, such as the keys of people beside those of projects.
    create procedure ${timeSchema}.put_rows_back() language plpgsql as $$ begin
      call ${timeSchema}.remove_rows();
      ${each(
        ({ from, kept }) => `insert into ${from} overriding system value select * from ${kept} on conflict do nothing;`,
      )}
    end $$`);
}
