/** By which column the rows are sorted: by the grid itself, or by the server, which the caller then asks. */
import { useMemo, useState } from 'react';
import type { Layout } from './columns.ts';
import { nextSort, type Sort, sortedRows } from './order.ts';
import type { Row } from './values.ts';

export interface Order {
  readonly sort: Sort | null;
  readonly setSort: (sort: Sort | null) => void;
  /** The next of the three ways to sort by a column. */
  readonly stepSort: (column: number) => void;
  /** Which row of the result is shown in this place. */
  readonly rowAt: (place: number) => number;
}

interface Sorting {
  readonly sort: Sort | null;
  readonly onSort: (sort: Sort | null) => void;
}

export function useOrder(rows: readonly Row[], layout: Layout, sorting: Sorting | undefined): Order {
  const [own, setOwn] = useState<Sort | null>(null);
  const sort = sorting === undefined ? own : sorting.sort;
  const setSort = sorting === undefined ? setOwn : sorting.onSort;
  const kind = layout.columns.find(({ index }) => index === own?.column)?.kind;
  // A sort by a column that a new result does not have is none.
  const order = useMemo(
    () => (own === null || kind === undefined ? null : sortedRows(rows, own, kind)),
    [rows, own, kind],
  );
  return {
    sort,
    setSort,
    stepSort: (column) => setSort(nextSort(sort, column)),
    rowAt: (place) => order?.[place] ?? place,
  };
}
