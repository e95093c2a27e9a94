/**
 * Rows as JSON, whatever their columns: for carrying them from one system database to another of the same schema. Times
 * keep their microseconds, and bytes are text such as `\x00ff`.
 */
import { type Fragment, type JsonValue, json, one, type Sql, type Tx } from './client.ts';

export type TableRow = { readonly [column: string]: JsonValue };

/** `condition` is about the table as `t`. */
export async function selectRows(sql: Sql, table: string, condition: Fragment): Promise<TableRow[]> {
  const rows = await sql<{ row: TableRow }[]>`select to_jsonb(t) as row from ${sql(table)} t where ${condition}`;
  return rows.map(({ row }) => row);
}

/** In the order given. The column `numbered`, if there is one, gets new numbers. */
export async function insertRows(
  tx: Tx,
  table: string,
  rows: readonly TableRow[],
  { numbered, skipTaken = false }: { readonly numbered?: string; readonly skipTaken?: boolean } = {},
): Promise<void> {
  if (rows.length === 0) return;
  // Those of the table that is here: what the rows call theirs is not put into a statement.
  const columns = await tx<{ name: string }[]>`
    select quote_ident(attname) as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''
      and attname <> ${numbered ?? ''}`;
  const list = columns.map(({ name }) => name).join(', ');
  await tx`
    insert into ${tx(table)} (${tx.unsafe(list)})
    select ${tx.unsafe(list)} from jsonb_populate_recordset(null::${tx(table)}, ${json(tx, [...rows])})
    ${skipTaken ? tx`on conflict do nothing` : tx``}`;
}

/** New numbers of the column are larger than this one. A sequence is not rolled back, which does no harm. */
export async function numberFrom(tx: Tx, table: string, column: string, last: number): Promise<void> {
  const { name } = one(await tx<{ name: string }[]>`select pg_get_serial_sequence(${table}, ${column}) as name`);
  await tx`select setval(${name}::regclass, greatest(nextval(${name}::regclass), ${last}::bigint))`;
}
