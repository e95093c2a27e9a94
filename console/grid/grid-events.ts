/** What the keyboard and the mouse do in a grid. */
import type { ClipboardEvent, KeyboardEvent, MouseEvent, PointerEvent } from 'react';
import { onceReleased, type Point } from '../ui/menu.tsx';
import { writeCells } from './formats.ts';
import { cellId } from './grid-row.tsx';
import { type Cell, cellAt, extendedTo, movedBy, type Range, rowsTo } from './selection.ts';
import type { Grid } from './use-grid.ts';

interface Doors {
  readonly id: string;
  readonly onView: (cell: Cell) => void;
  readonly onMenu: (cell: Cell, at: Point) => void;
}

export function gridEvents(grid: Grid, doors: Doors) {
  const { selection, range, select } = grid;
  const columns = grid.layout.columns;
  return {
    onKeyDown: (event: KeyboardEvent) => {
      // What is typed into a cell is not for the grid.
      if (event.target !== event.currentTarget) return;
      if (move(event, grid) || act(event, grid, doors)) event.preventDefault();
    },
    onCopy: (event: ClipboardEvent) => {
      if (range === null) return;
      event.preventDefault();
      const names = columns.slice(range.left, range.right + 1).map(({ name }) => name);
      const text = range.top === -1 ? names.join('\t') : writeCells(grid.cellsIn(range), 'text');
      event.clipboardData.setData('text/plain', text);
    },
    onFocus: () => {
      if (selection === null && grid.rowCount > 0) select(cellAt({ row: 0, column: 0 }));
    },
    onPointerDown: (event: PointerEvent) => {
      const place = placeOf(event.target);
      if (place === null || place.cell.row === -1 || event.button !== 0 || isField(event.target)) return;
      const { cell, isNumber } = place;
      if (isNumber) select(rowsTo(event.shiftKey ? selection : null, cell.row));
      else select(event.shiftKey ? extendedTo(selection, cell) : cellAt(cell));
    },
    onPointerOver: (event: PointerEvent) => {
      const isDragged = event.buttons === 1 && event.pointerType === 'mouse';
      const place = isDragged ? placeOf(event.target) : null;
      if (place !== null && place.cell.row >= 0) select(extendedTo(selection, place.cell));
    },
    onClick: (event: MouseEvent) => {
      const place = isLink(event.target) ? placeOf(event.target) : null;
      const column = columns[place?.cell.column ?? -1];
      if (place !== null && column !== undefined) grid.links?.onFollow(grid.rowAt(place.cell.row), column.index);
    },
    onDoubleClick: (event: MouseEvent) => {
      const place = placeOf(event.target);
      if (place === null || place.isNumber || place.cell.row < 0) return;
      if (grid.canEdit(place.cell)) grid.edit({ ...place.cell, typed: null });
      else doors.onView(place.cell);
    },
    onContextMenu: (event: MouseEvent) => {
      const place = placeOf(event.target);
      if (place === null) return;
      event.preventDefault();
      if (place.cell.row >= 0 && !isInside(range, place.cell)) select(cellAt(place.cell));
      const at = { x: event.clientX, y: event.clientY };
      onceReleased(event, () => doors.onMenu(place.cell, at));
    },
  };
}

function move(event: KeyboardEvent, grid: Grid): boolean {
  const { key, shiftKey, altKey } = event;
  if (altKey) return false;
  const isCommand = event.ctrlKey || event.metaKey;
  const size = { rows: grid.rowCount, columns: grid.layout.columns.length, page: grid.pageRows() };
  const moved = movedBy({ key, shiftKey, isCommand }, grid.selection, size);
  if (moved === null) return false;
  grid.select(moved);
  if (!moved.isRows) grid.show(moved.active);
  return true;
}

function act(event: KeyboardEvent, grid: Grid, { id, onView, onMenu }: Doors): boolean {
  const active = grid.selection?.active;
  if (active === undefined) return false;
  const { key, shiftKey } = event;
  const column = grid.layout.columns[active.column];
  if (key === 'ContextMenu' || (key === 'F10' && shiftKey)) {
    onMenu(active, below(event.currentTarget, document.getElementById(cellId(id, active))));
    return true;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (grid.canEdit(active) && !(key === 'Enter' && shiftKey) && key !== ' ') {
    const isTyped = key.length === 1;
    if (!isTyped && key !== 'Enter' && key !== 'F2') return false;
    grid.edit({ ...active, typed: isTyped ? key : null });
    return true;
  }
  if (key !== 'Enter' && key !== ' ') return false;
  if (active.row === -1) {
    if (column !== undefined) grid.stepSort(column.index);
  } else if (shiftKey) grid.select(rowsTo(null, active.row));
  else onView(active);
  return true;
}

/** Under the cell; where it is not on the screen, as the last one of all may be, at the nearest edge of the grid. */
function below(sheet: Element, cell: Element | null): Point {
  const { left, right, top, bottom } = sheet.getBoundingClientRect();
  const place = cell?.getBoundingClientRect() ?? { left, bottom: top };
  return { x: Math.max(left, Math.min(place.left, right)), y: Math.max(top, Math.min(place.bottom, bottom)) };
}

/** Each cell says where it is, so that one listener does for all of them. */
function placeOf(target: EventTarget): { readonly cell: Cell; readonly isNumber: boolean } | null {
  const place = target instanceof Element ? target.closest<HTMLElement>('[data-row]') : null;
  if (place === null) return null;
  const column = Number(place.dataset.column);
  return { cell: { row: Number(place.dataset.row), column: Math.max(0, column) }, isNumber: column === -1 };
}

const isLink = (target: EventTarget) => target instanceof Element && target.closest('.grid-link') !== null;
const isField = (target: EventTarget) => target instanceof HTMLInputElement;

const isInside = (range: Range | null, { row, column }: Cell) =>
  range !== null && row >= range.top && row <= range.bottom && column >= range.left && column <= range.right;
