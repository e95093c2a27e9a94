/** The tables of a database and their columns, asked of the database itself. */
import { runSql } from '../api/sql.ts';

export interface Table {
  readonly schema: string;
  readonly name: string;
  readonly kind: string;
  readonly columns: readonly string[];
  /** Rows, as the server last counted or estimated them; null before it has. */
  readonly estimate: number | null;
}

/** Without what Catnap keeps beside the users of an auth integration. */
const query = `
  select n.nspname, c.relname, c.relkind::text,
    coalesce(json_agg(a.attname order by a.attnum) filter (where a.attnum is not null), '[]')::text,
    nullif(c.reltuples, -1)::int8
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and (n.nspname, c.relname) <> ('neon_auth', 'users_sync_position')
  group by 1, 2, 3, c.reltuples order by n.nspname <> 'public', 1, 2 limit 5000`;

const kinds: Readonly<Record<string, string>> = {
  r: 'table',
  p: 'partitioned table',
  v: 'view',
  m: 'materialized view',
  f: 'foreign table',
};

export async function readTables(uri: string): Promise<readonly Table[]> {
  const { rows } = await runSql(uri, query, { readOnly: true });
  return rows.map(([schema, name, kind, columns, estimate]) => ({
    schema: schema ?? '',
    name: name ?? '',
    kind: kinds[kind ?? ''] ?? 'table',
    columns: JSON.parse(columns ?? '[]') as string[],
    estimate: estimate === null || estimate === undefined ? null : Number(estimate),
  }));
}
