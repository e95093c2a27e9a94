/** Values that name rows of other tables, as links to those rows. */
import { useMemo } from 'react';
import type { Links } from '../grid/editing.ts';
import type { Row } from '../grid/values.ts';
import type { TableShape } from './changes.ts';
import type { Filter } from './filters.ts';
import type { ForeignKey, TableFacts } from './table-facts.ts';

type Open = (table: { readonly schema: string; readonly name: string }, filters: readonly Filter[]) => void;

export function useForeignKeys(facts: TableFacts, shape: TableShape, rows: readonly Row[], onOpen: Open): Links {
  const keys = useMemo(() => keysByColumn(facts, shape), [facts, shape]);
  return useMemo(
    () => ({
      columns: new Set(keys.keys()),
      labelOf: (column, value) => {
        const key = keys.get(column);
        const place = key?.columns.indexOf(shape.columns[column] ?? '') ?? 0;
        return `Open ${key?.table} with ${key?.references[place]} = ${value}`;
      },
      onFollow: (row, column) => {
        const key = keys.get(column);
        if (key === undefined) return;
        const filters = key.columns.map((name, at): Filter => {
          const value = rows[row]?.[shape.columns.indexOf(name)] ?? '';
          return { column: key.references[at] ?? '', operator: '=', value };
        });
        onOpen({ schema: key.schema, name: key.table }, filters);
      },
    }),
    [keys, shape, rows, onOpen],
  );
}

function keysByColumn({ foreign_keys: keys }: TableFacts, { columns }: TableShape): ReadonlyMap<number, ForeignKey> {
  return new Map(keys.flatMap((key) => key.columns.map((name): [number, ForeignKey] => [columns.indexOf(name), key])));
}
