/** The state of a grid: columns, order, selection, and which rows and columns are on the screen. */
import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useMemo, useRef, useState } from 'react';
import type { Column, Layout } from './columns.ts';
import type { Editing, Links } from './editing.ts';
import type { Cells } from './formats.ts';
import type { Sort } from './order.ts';
import { type Cell, type Range, rangeOf, type Selection } from './selection.ts';
import type { Field, TypeNames } from './types.ts';
import { type Columns, useLayout } from './use-layout.ts';
import { type Order, useOrder } from './use-order.ts';
import type { Row } from './values.ts';

export interface GridContent {
  readonly fields: readonly Field[];
  readonly rows: readonly Row[];
  readonly typeNames: TypeNames;
  /** A quoted name, for copies as SQL. */
  readonly table: string;
  /** Set where the server sorts. */
  readonly sorting: { readonly sort: Sort | null; readonly onSort: (sort: Sort | null) => void } | undefined;
  readonly editing: Editing | undefined;
  readonly links: Links | undefined;
}

/** The columns that are drawn. */
export interface Drawn {
  readonly pinned: readonly Column[];
  /** The place of the first one of `free` as shown. */
  readonly firstFree: number;
  readonly free: readonly Column[];
  /** Of the columns between the pinned ones and the first that is drawn. */
  readonly gap: number;
}

export interface Grid extends Columns, Order {
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly layout: Layout;
  readonly rowCount: number;
  readonly selection: Selection | null;
  readonly range: Range | null;
  readonly select: (selection: Selection | null) => void;
  readonly drawn: Drawn;
  /** Those of the row that is written in. */
  readonly drawnInEdited: Drawn;
  readonly height: number;
  readonly drawnRows: readonly { readonly index: number; readonly start: number }[];
  /** Scrolls until a cell is on the screen. */
  readonly show: (cell: Cell) => void;
  /** How many rows the screen holds. */
  readonly pageRows: () => number;
  readonly valuesAt: (row: number) => Row;
  readonly cellsIn: (range: Range) => Cells;
  readonly everything: Range;
  readonly editing: Editing | undefined;
  readonly links: Links | undefined;
  /** The cell that is written in, and what was typed to begin with. */
  readonly edited: Edited | null;
  readonly edit: (edited: Edited | null) => void;
  readonly canEdit: (cell: Cell) => boolean;
}

export interface Edited extends Cell {
  /** Null: what is there already. */
  readonly typed: string | null;
}

export const rowHeight = 28;
export const headHeight = 32;
const rowsAhead = 10;
const columnsAhead = 1;

export function useGrid(content: GridContent): Grid {
  const { fields, rows, typeNames, table, sorting, editing, links } = content;
  const scroller = useRef<HTMLDivElement>(null);
  const columns = useLayout(fields, rows, typeNames);
  const order = useOrder(rows, columns.layout, sorting);
  const [selection, select] = useState<Selection | null>(null);
  const [edited, edit] = useState<Edited | null>(null);
  const { layout } = columns;
  const rowsShown = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    paddingStart: headHeight,
    scrollPaddingStart: headHeight,
    overscan: rowsAhead,
    // The row that is written in too, wherever it is: what is typed goes into its field.
    rangeExtractor: (seen) => withRow(defaultRangeExtractor(seen), edited?.row),
    useFlushSync: false,
  });
  const { drawn, drawnWith, showColumn } = useDrawnColumns(layout, scroller);

  const valuesAt = (row: number): Row => rows[order.rowAt(row)] ?? [];
  const cellsIn = (range: Range): Cells => {
    const chosen = layout.columns.slice(range.left, range.right + 1);
    const picked: Row[] = [];
    for (let row = Math.max(0, range.top); row <= range.bottom; row += 1) {
      const values = valuesAt(row);
      picked.push(chosen.map(({ index }) => values[index] ?? null));
    }
    return { fields: chosen.flatMap(({ index }) => fields[index] ?? []), rows: picked, table };
  };
  return {
    ...columns,
    ...order,
    scroller,
    rowCount: rows.length,
    selection,
    range: selection === null ? null : rangeOf(selection, layout.columns.length),
    select,
    drawn,
    drawnInEdited: edited === null ? drawn : drawnWith(edited.column),
    height: rowsShown.getTotalSize(),
    drawnRows: rowsShown.getVirtualItems(),
    show: ({ row, column }) => {
      if (row >= 0) rowsShown.scrollToIndex(row);
      showColumn(column);
    },
    pageRows: () => Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 0) - headHeight) / rowHeight) - 1),
    valuesAt,
    cellsIn,
    editing,
    links,
    edited,
    edit,
    canEdit: ({ row, column }) =>
      row >= 0 && editing?.isEditable(order.rowAt(row), layout.columns[column]?.index ?? -1) === true,
    everything: { top: 0, bottom: rows.length - 1, left: 0, right: layout.columns.length - 1 },
  };
}

function withRow(rows: number[], row = -1): number[] {
  const [first = 0] = rows;
  if (row === -1 || rows.includes(row)) return rows;
  return row < first ? [row, ...rows] : [...rows, row];
}

function useDrawnColumns(layout: Layout, scroller: RefObject<HTMLDivElement | null>) {
  const { columns, pinnedCount, fixedWidth } = layout;
  const free = useMemo(() => columns.slice(pinnedCount), [columns, pinnedCount]);
  const shown = useVirtualizer({
    horizontal: true,
    count: free.length,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => free[at]?.width ?? 0,
    paddingStart: fixedWidth,
    scrollPaddingStart: fixedWidth,
    overscan: columnsAhead,
    // With its width, which it would otherwise remember.
    getItemKey: (at) => `${free[at]?.index} ${free[at]?.width}`,
    useFlushSync: false,
  });
  const items = shown.getVirtualItems();
  const first = items.at(0)?.index ?? 0;
  const last = items.at(-1)?.index ?? -1;
  // The same object while the same columns are drawn: rows that have not changed are not drawn again.
  const drawn = useMemo(() => drawnOf(layout, first, last), [layout, first, last]);
  const drawnWith = (column: number): Drawn => {
    const at = column - pinnedCount;
    return at < 0 || (at >= first && at <= last) ? drawn : drawnOf(layout, Math.min(first, at), Math.max(last, at));
  };
  const showColumn = (column: number) => {
    if (column >= pinnedCount) shown.scrollToIndex(column - pinnedCount);
  };
  return { drawn, drawnWith, showColumn };
}

/** The pinned columns, and of the others those from one place to another. */
function drawnOf({ columns, pinnedCount, fixedWidth }: Layout, first: number, last: number): Drawn {
  const free = columns.slice(pinnedCount + first, pinnedCount + last + 1);
  const gap = (free[0]?.left ?? fixedWidth) - fixedWidth;
  return { pinned: columns.slice(0, pinnedCount), firstFree: pinnedCount + first, free, gap };
}
