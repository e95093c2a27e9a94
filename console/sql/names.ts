/** Names of types and tables that a result knows by their numbers alone. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { runSql, type SqlField } from '../api/sql.ts';
import { isBuiltIn, noTypeNames, type TypeNames } from '../grid/types.ts';

export interface ResultNames {
  readonly types: TypeNames;
  /** The one table that all columns come from, quoted; undefined for a join, or while it is not known. */
  readonly table: string | undefined;
}

const query = `
  select 't', oid::text, pg_catalog.format_type(oid, null) from pg_catalog.pg_type where oid = any($1::oid[])
  union all select 'c', oid::text, oid::regclass::text from pg_catalog.pg_class where oid = any($2::oid[])`;

/** One question for each kind of result; the compute is awake, as it has just answered. */
const namesQuery = (uri: string, types: string, tables: string) =>
  queryOptions({
    queryKey: ['names', uri, types, tables],
    queryFn: async () => (await runSql(uri, query, { params: [`{${types}}`, `{${tables}}`], readOnly: true })).rows,
    enabled: types !== '' || tables !== '',
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    retry: false,
  });

export function useResultNames(uri: string, fields: readonly SqlField[]): ResultNames {
  const types = [...new Set(fields.map(({ dataTypeID }) => dataTypeID))].filter((type) => !isBuiltIn(type));
  const [table, ...others] = [...new Set(fields.map(({ tableID = 0 }) => tableID))];
  const ofOne = table === undefined || table === 0 || others.length > 0 ? '' : String(table);
  const { data } = useQuery(namesQuery(uri, types.join(), ofOne));
  if (data === undefined) return { types: noTypeNames, table: undefined };
  const named = (kind: string) =>
    data.flatMap(([of, id, name]): [number, string][] => (of === kind ? [[Number(id), name ?? '']] : []));
  return { types: new Map(named('t')), table: named('c')[0]?.[1] };
}
