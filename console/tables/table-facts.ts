/** What a table is made of, asked of the database in one statement. */
import { queryOptions } from '@tanstack/react-query';
import { runSql } from '../api/sql.ts';
import { quoteName } from '../grid/formats.ts';
import type { ValueKind } from '../grid/types.ts';

export interface ColumnFact {
  readonly name: string;
  readonly type: string;
  readonly not_null: boolean;
  readonly default: string | null;
  /** The database alone gives it its value. */
  readonly generated: boolean;
  readonly comment: string | null;
}

export interface ForeignKey {
  readonly columns: readonly string[];
  readonly schema: string;
  readonly table: string;
  readonly references: readonly string[];
}

interface Definition {
  readonly name: string;
  readonly definition: string;
}

export interface TableFacts {
  readonly columns: readonly ColumnFact[];
  readonly primary_key: readonly string[];
  readonly foreign_keys: readonly ForeignKey[];
  readonly indexes: readonly (Definition & { readonly bytes: number })[];
  readonly constraints: readonly Definition[];
  readonly policies: readonly Definition[];
  readonly triggers: readonly Definition[];
  readonly row_security: boolean;
  readonly table_bytes: number;
  readonly total_bytes: number;
}

const columns = `
  select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
    'not_null', a.attnotnull, 'default', pg_get_expr(d.adbin, d.adrelid),
    'generated', a.attgenerated <> '' or a.attidentity = 'a', 'comment', col_description(c.oid, a.attnum))
    order by a.attnum)
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped`;

/** SQL for the names of a table's columns, as a list in the order of their numbers in an array. */
export const columnNames = (numbers: string, of: string) => `
  (select json_agg(a.attname order by k.place) from unnest(${numbers}) with ordinality k (number, place)
   join pg_attribute a on a.attrelid = ${of} and a.attnum = k.number)`;

const query = `
  select json_build_object(
    'columns', (${columns}),
    'primary_key', coalesce((select ${columnNames('p.conkey', 'c.oid')} from pg_constraint p
      where p.conrelid = c.oid and p.contype = 'p'), '[]'),
    'foreign_keys', coalesce((select json_agg(json_build_object('columns', ${columnNames('f.conkey', 'f.conrelid')},
      'schema', fn.nspname, 'table', fc.relname, 'references', ${columnNames('f.confkey', 'f.confrelid')}))
      from pg_constraint f join pg_class fc on fc.oid = f.confrelid join pg_namespace fn on fn.oid = fc.relnamespace
      where f.conrelid = c.oid and f.contype = 'f'), '[]'),
    'indexes', coalesce((select json_agg(json_build_object('name', ic.relname, 'definition', pg_get_indexdef(ic.oid),
      'bytes', pg_relation_size(ic.oid)) order by ic.relname)
      from pg_index i join pg_class ic on ic.oid = i.indexrelid where i.indrelid = c.oid), '[]'),
    'constraints', coalesce((select json_agg(json_build_object('name', conname,
      'definition', pg_get_constraintdef(oid)) order by contype, conname)
      from pg_constraint where conrelid = c.oid and contype <> 'n'), '[]'),
    'policies', coalesce((select json_agg(json_build_object('name', polname, 'definition', concat_ws(' ',
      case polcmd when '*' then 'all' when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
      else 'delete' end, 'using (' || pg_get_expr(polqual, polrelid) || ')',
      'with check (' || pg_get_expr(polwithcheck, polrelid) || ')')) order by polname)
      from pg_policy where polrelid = c.oid), '[]'),
    'triggers', coalesce((select json_agg(json_build_object('name', tgname, 'definition', pg_get_triggerdef(oid))
      order by tgname) from pg_trigger where tgrelid = c.oid and not tgisinternal), '[]'),
    'row_security', c.relrowsecurity,
    'table_bytes', pg_table_size(c.oid), 'total_bytes', pg_total_relation_size(c.oid))::text
  from pg_class c where c.oid = $1::regclass`;

/** As far as it matters for how a constant is written. */
export function kindOfType(type: string | undefined): ValueKind {
  if (type === undefined) return 'text';
  if (/^(smallint|integer|bigint|numeric|real|double precision|oid)\b(?!.*\[\])/.test(type)) return 'number';
  if (type.endsWith('[]')) return 'array';
  if (/^(text|character|name|citext)\b/.test(type)) return 'text';
  return type === 'boolean' ? 'boolean' : type.startsWith('json') ? 'json' : 'moment';
}

export const tableFactsQuery = (uri: string, schema: string, name: string) =>
  queryOptions({
    queryKey: ['table-facts', uri, schema, name],
    queryFn: async ({ signal }) => {
      const params = [`${quoteName(schema)}.${quoteName(name)}`];
      const { rows } = await runSql(uri, query, { params, readOnly: true, signal });
      const [text] = rows[0] ?? [];
      if (text === undefined || text === null) throw new Error('The table is not there any more.');
      return JSON.parse(text) as TableFacts;
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
