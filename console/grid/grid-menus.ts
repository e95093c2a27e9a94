/** What the menus of a grid offer: for a column, for cells, for copies and for files. */
import { copyText } from '../ui/clipboard.ts';
import { download } from '../ui/download.ts';
import type { MenuItem } from '../ui/menu.tsx';
import type { Column } from './columns.ts';
import { type Cells, formatNames, formats, writeCells } from './formats.ts';
import type { Cell, Range } from './selection.ts';
import type { Grid } from './use-grid.ts';

export function menuItems(grid: Grid, cell: Cell, onView: (cell: Cell) => void): MenuItem[] {
  const column = grid.layout.columns[cell.column];
  if (column === undefined) return [];
  if (cell.row === -1) return columnItems(grid, column);
  const range = selectedCells(grid) ?? { top: cell.row, bottom: cell.row, left: cell.column, right: cell.column };
  const isOne = range.top === range.bottom && range.left === range.right;
  const lines = { ...range, left: 0, right: grid.layout.columns.length - 1 };
  return [
    { label: 'View the value', onSelect: () => onView(cell) },
    ...linkItems(grid, cell, column),
    ...editItems(grid, cell, column, range),
    ...copyItems(grid, range, isOne ? 'Copy cell' : 'Copy selection'),
    ...copyItems(grid, lines, range.top === range.bottom ? 'Copy row' : 'Copy rows'),
  ];
}

function linkItems({ links, valuesAt, rowAt }: Grid, { row }: Cell, { index }: Column): MenuItem[] {
  const value = valuesAt(row)[index] ?? null;
  if (links === undefined || value === null || !links.columns.has(index)) return [];
  return [{ label: links.labelOf(index, value), onSelect: () => links.onFollow(rowAt(row), index) }];
}

function editItems(grid: Grid, cell: Cell, { index }: Column, { top, bottom }: Range): MenuItem[] {
  const { editing, rowAt } = grid;
  if (editing === undefined) return [];
  const isOff = !grid.canEdit(cell);
  const rows = Array.from({ length: bottom - top + 1 }, (_, at) => rowAt(top + at));
  const isDeleted = rows.every((row) => editing.states.get(row)?.kind === 'deleted');
  const noun = rows.length === 1 ? 'row' : `${rows.length} rows`;
  return [
    { label: 'Edit', isApart: true, isDisabled: isOff, onSelect: () => grid.edit({ ...cell, typed: null }) },
    { label: 'Set to NULL', isDisabled: isOff, onSelect: () => editing.onEdit(rowAt(cell.row), index, null) },
    { label: `${isDeleted ? 'Keep' : 'Delete'} ${noun}`, onSelect: () => editing.onToggleRows(rows) },
  ];
}

function columnItems({ sort, setSort, togglePin, fitWidth, resize }: Grid, column: Column): MenuItem[] {
  const { index, width, isPinned, name } = column;
  return [
    { label: 'Sort ascending', onSelect: () => setSort({ column: index, isDescending: false }) },
    { label: 'Sort descending', onSelect: () => setSort({ column: index, isDescending: true }) },
    { label: 'Clear sorting', isDisabled: sort === null, onSelect: () => setSort(null) },
    { label: isPinned ? 'Unpin column' : 'Pin column', isApart: true, onSelect: () => togglePin(index) },
    { label: 'Fit width to values', onSelect: () => fitWidth(index) },
    { label: 'Wider', onSelect: () => resize(index, width * 1.5) },
    { label: 'Narrower', onSelect: () => resize(index, width / 1.5) },
    { label: 'Copy column name', isApart: true, onSelect: () => void copyText(name) },
  ];
}

/** Null while nothing is selected, or only a head. */
export const selectedCells = ({ range }: Grid) => (range === null || range.top === -1 ? null : range);

/** In the order of their use. */
export const copyItems = (grid: Grid, range: Range, words: string): MenuItem[] =>
  formats.map((format, at) => ({
    label: `${words} as ${formatNames[format]}`,
    isApart: at === 0,
    onSelect: () => void copyText(writeCells(grid.cellsIn(range), format)),
  }));

const mediaTypes = { csv: 'text/csv', json: 'application/json', sql: 'application/sql' } as const;

/** Files with the rows that are here. */
export const fileItems = (cells: () => Cells, fileName: string): MenuItem[] =>
  (['csv', 'json', 'sql'] as const).map((format) => ({
    label: `These rows as ${formatNames[format]}`,
    onSelect: () =>
      download(`${fileName}.${format}`, new Blob([writeCells(cells(), format)], { type: mediaTypes[format] })),
  }));
