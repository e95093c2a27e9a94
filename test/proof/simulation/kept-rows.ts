/**
 * Keeps the rows of a ground's project aside and puts them back, in one round trip each: to make the same project again
 * would take a hundred statements. The tables are found in the schema, so that one that is added later is kept too.
 */
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
  const tables = await listTables(sql);
  const each = (write: (name: string, kept: string) => string) =>
    tables.map((name) => write(name, `${timeSchema}.kept_${name}`)).join('\n');
  await sql.unsafe(`
    ${each((name, kept) => `create unlogged table ${kept} (like ${name});`)}
    create procedure ${timeSchema}.remove_rows() language plpgsql as $$ begin
      delete from projects;
      delete from idempotency_keys;
    end $$;
    -- Returns the tables that have any.
    create function ${timeSchema}.keep_rows() returns text[] language plpgsql as $$ declare filled text[]; begin
      ${each(
        (name, kept) => `
        delete from ${kept};
        insert into ${kept} select * from ${name};
        if found then filled := filled || '${name}'::text; end if;`,
      )}
      return filled;
    end $$;
    -- Some rows have never gone, such as the keys of people beside those of projects.
    create procedure ${timeSchema}.put_rows_back(filled text[]) language plpgsql as $$ begin
      call ${timeSchema}.remove_rows();
      ${each(
        (name, kept) => `
        if '${name}' = any(filled) then
          insert into ${name} overriding system value select * from ${kept} on conflict do nothing;
        end if;`,
      )}
    end $$`);
}
