/** The rows of a table: filtered and sorted by the server, page by page, and edited where they have a primary key. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { runSql, type SqlResult } from '../api/sql.ts';
import { DataGrid } from '../grid/data-grid.tsx';
import { quoteName } from '../grid/formats.ts';
import type { Table } from '../sql/catalog.ts';
import { useResultNames } from '../sql/names.ts';
import { useExport } from '../sql/use-export.ts';
import type { Target } from '../target/target.tsx';
import { CopyButton } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { bytes } from '../ui/format.ts';
import { Failure, Loading } from '../ui/states.tsx';
import type { TableShape } from './changes.ts';
import { ChangesBar } from './changes-bar.tsx';
import { FilterBar } from './filter-bar.tsx';
import { type Filter, pageSql, type RowsWish, rowsPerPage, rowsSql } from './filters.ts';
import { RowCount } from './row-count.tsx';
import { kindOfType, type TableFacts } from './table-facts.ts';
import { useEditing } from './use-editing.ts';
import { useForeignKeys } from './use-foreign-keys.ts';

interface RowsProps {
  readonly target: Target;
  readonly table: Table;
  readonly facts: TableFacts;
  readonly wish: RowsWish;
  readonly onWish: (wish: RowsWish) => void;
  /** Shows rows of another table. */
  readonly onOpen: (table: { readonly schema: string; readonly name: string }, filters: readonly Filter[]) => void;
}

export function Rows(props: RowsProps) {
  const { target, table, facts, wish, onWish } = props;
  const shape = useMemo(() => shapeOf(table, facts), [table, facts]);
  const sql = rowsSql(shape, wish);
  const rows = useQuery({
    queryKey: ['rows', target.uri, sql, wish.page],
    queryFn: ({ signal }) => runSql(target.uri, pageSql(sql, wish.page), { readOnly: true, signal }),
    // The rows before stay until the others are there.
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <div className="browser-rows">
      <div className="rows-head">
        <FilterBar
          key={JSON.stringify(wish.filters)}
          columns={shape.columns}
          filters={wish.filters}
          onApply={(filters) => onWish({ ...wish, filters, page: 1 })}
        />
        <div className="shown-sql">
          <code>{sql.replaceAll(/\s*\n\s*/g, ' ')}</code>
          <CopyButton text={`${sql};`} label="Copy the SQL" />
        </div>
      </div>
      {rows.error !== null ? (
        <Failure error={rows.error} onRetry={() => rows.refetch()} />
      ) : rows.data === undefined ? (
        <Loading lines={8} />
      ) : (
        <Found {...props} shape={shape} sql={sql} result={rows.data} refresh={() => void rows.refetch()} />
      )}
    </div>
  );
}

function shapeOf({ schema, name }: Table, facts: TableFacts): TableShape {
  const types = new Map(facts.columns.map((column) => [column.name, column.type]));
  return {
    name: `${quoteName(schema)}.${quoteName(name)}`,
    columns: facts.columns.map((column) => column.name),
    primaryKey: facts.primary_key,
    kindOf: (column) => kindOfType(types.get(column)),
  };
}

interface FoundProps extends RowsProps {
  readonly shape: TableShape;
  readonly sql: string;
  readonly result: SqlResult;
  readonly refresh: () => void;
}

function Found({ target, table, facts, wish, onWish, onOpen, shape, sql, result, refresh }: FoundProps) {
  const page = useMemo(() => result.rows.slice(0, rowsPerPage), [result]);
  const { types } = useResultNames(target.uri, result.fields);
  const { items, received, cancel } = useExport(target.uri, sql, table.name);
  const { rows, editing, statements, insert, discard } = useEditing(
    table,
    facts,
    shape,
    page,
    target.moment !== undefined,
  );
  const links = useForeignKeys(facts, shape, rows, onOpen);
  const { sort } = wish;
  const first = (wish.page - 1) * rowsPerPage + 1;
  const change = (next: Partial<RowsWish>) => onWish({ ...wish, ...next });
  return (
    <>
      <DataGrid
        label={table.name}
        fields={result.fields}
        rows={rows}
        typeNames={types}
        table={shape.name}
        note={
          <RowCount
            target={target}
            shape={shape}
            filters={wish.filters}
            estimate={table.estimate}
            first={page.length === 0 ? 0 : first}
            last={first + page.length - 1}
            isWhole={wish.page === 1 && result.rows.length <= rowsPerPage}
          />
        }
        fileName={table.name}
        exports={items}
        editing={editing}
        links={links}
        sorting={{
          sort: sort === null ? null : { column: shape.columns.indexOf(sort.column), isDescending: sort.isDescending },
          onSort: (next) =>
            change({
              page: 1,
              sort:
                next === null ? null : { column: shape.columns[next.column] ?? '', isDescending: next.isDescending },
            }),
        }}
        tools={
          <>
            {received !== null && (
              <Button small onClick={cancel}>
                Exporting {bytes(received)} · Cancel
              </Button>
            )}
            <Button small tone="quiet" disabled={wish.page === 1} onClick={() => change({ page: wish.page - 1 })}>
              Previous
            </Button>
            <Button
              small
              tone="quiet"
              disabled={result.rows.length <= rowsPerPage}
              onClick={() => change({ page: wish.page + 1 })}
            >
              Next
            </Button>
            <Button small tone="quiet" onClick={refresh}>
              Refresh
            </Button>
            {insert !== undefined && (
              <Button small onClick={insert}>
                Insert row
              </Button>
            )}
          </>
        }
      />
      <ChangesBar
        target={target}
        statements={statements}
        onApplied={() => {
          discard();
          refresh();
        }}
        onDiscard={discard}
      />
    </>
  );
}
