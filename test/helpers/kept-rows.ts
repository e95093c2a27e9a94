/**
 * Keeps the rows of all projects of a system database aside and puts them back, in one round trip each: to make the
 * same project again takes a hundred statements. The tables are found in the schema, so that one that is added later is
 * kept too.
 */
import type { Sql } from '../../src/db/client.ts';

const schema = 'kept';

interface Table {
  readonly name: string;
  /** Without those that the database works out. */
  readonly columns: string;
}

/** Those whose rows go when a project goes, parents first; and what commands remember of themselves. */
async function listTables(sql: Sql): Promise<Table[]> {
  return sql<Table[]>`
    with recursive owned (id, depth) as (
      select 'projects'::regclass::oid, 0
      union
      select c.conrelid, o.depth + 1 from pg_constraint c join owned o on c.confrelid = o.id
      where c.contype = 'f' and c.conrelid <> c.confrelid and o.depth < 20)
    select c.relname as name, (
        select string_agg(quote_ident(attname), ', ') from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
    from pg_class c left join (select id, max(depth) as depth from owned group by id) o on o.id = c.oid
    where o.id is not null or c.oid = 'idempotency_keys'::regclass
    order by o.depth nulls last, c.relname`;
}

export class KeptRows {
  readonly #sql: Sql;
  /** The tables that have rows which are kept: an insert from an empty one costs as much as a short statement. */
  #filled: readonly string[] = [];

  private constructor(sql: Sql) {
    this.#sql = sql;
  }

  static async open(sql: Sql): Promise<KeptRows> {
    const tables = await listTables(sql);
    const each = (write: (name: string, kept: string, columns: string) => string) =>
      tables.map(({ name, columns }) => write(name, `${schema}.${name}`, columns)).join('\n');
    await sql.unsafe(`
      create schema ${schema};
      ${each((name, kept) => `create unlogged table ${kept} (like ${name});`)}
      create procedure ${schema}.remove() language plpgsql as $$ begin
        delete from projects;
        delete from idempotency_keys;
      end $$;
      -- Returns the tables that have any.
      create function ${schema}.keep() returns text[] language plpgsql as $$ declare filled text[]; begin
        ${each(
          (name, kept) => `
          delete from ${kept};
          insert into ${kept} select * from ${name};
          if found then filled := filled || '${name}'::text; end if;`,
        )}
        return filled;
      end $$;
      -- Some rows have never gone, such as the keys of people beside those of projects.
      create procedure ${schema}.put_back(filled text[]) language plpgsql as $$ begin
        call ${schema}.remove();
        ${each(
          (name, kept, columns) => `
          if '${name}' = any(filled) then
            insert into ${name} (${columns}) overriding system value select ${columns} from ${kept}
            on conflict do nothing;
          end if;`,
        )}
      end $$`);
    return new KeptRows(sql);
  }

  async remove(): Promise<void> {
    await this.#sql`call kept.remove()`;
  }

  async keep(): Promise<void> {
    const [kept] = await this.#sql<{ tables: string[] }[]>`select kept.keep() as tables`;
    this.#filled = kept?.tables ?? [];
  }

  async putBack(): Promise<void> {
    await this.#sql`call kept.put_back(${this.#filled})`;
  }
}
