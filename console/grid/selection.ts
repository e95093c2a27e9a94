/** Which cell of a grid has the focus, and which cells are selected: a rectangle of cells, or whole rows. */

export interface Cell {
  /** As shown; -1 is the head. */
  readonly row: number;
  readonly column: number;
}

export interface Selection {
  readonly anchor: Cell;
  readonly active: Cell;
  readonly isRows: boolean;
}

export interface Range {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

export interface GridSize {
  readonly rows: number;
  readonly columns: number;
  /** Rows that fit on the screen. */
  readonly page: number;
}

export const cellAt = (cell: Cell): Selection => ({ anchor: cell, active: cell, isRows: false });

export const extendedTo = (selection: Selection | null, active: Cell): Selection =>
  selection === null || selection.anchor.row === -1 ? cellAt(active) : { ...selection, active };

export const rowsTo = (selection: Selection | null, row: number): Selection => ({
  anchor: { row: selection?.anchor.row ?? row, column: 0 },
  active: { row, column: 0 },
  isRows: true,
});

export function rangeOf({ anchor, active, isRows }: Selection, columns: number): Range {
  return {
    top: Math.min(anchor.row, active.row),
    bottom: Math.max(anchor.row, active.row),
    left: isRows ? 0 : Math.min(anchor.column, active.column),
    right: isRows ? columns - 1 : Math.max(anchor.column, active.column),
  };
}

export interface Keys {
  readonly key: string;
  readonly shiftKey: boolean;
  /** Control, or Command on a Mac. */
  readonly isCommand: boolean;
}

/** Where a key leads, or null for a key that moves nothing. */
export function movedBy(keys: Keys, selection: Selection | null, size: GridSize): Selection | null {
  const from = selection?.active ?? { row: 0, column: 0 };
  if (keys.isCommand && keys.key.toLowerCase() === 'a' && size.rows > 0) {
    return { anchor: { row: 0, column: 0 }, active: { row: size.rows - 1, column: 0 }, isRows: true };
  }
  const target = targetOf(keys, from, size);
  if (target === null) return null;
  const cell = {
    row: Math.max(-1, Math.min(size.rows - 1, target.row)),
    column: Math.max(0, Math.min(size.columns - 1, target.column)),
  };
  return keys.shiftKey && cell.row >= 0 ? extendedTo(selection, cell) : cellAt(cell);
}

function targetOf({ key, isCommand }: Keys, { row, column }: Cell, size: GridSize): Cell | null {
  switch (key) {
    case 'ArrowUp':
      return { row: isCommand ? 0 : row - 1, column };
    case 'ArrowDown':
      return { row: isCommand ? size.rows - 1 : row + 1, column };
    case 'ArrowLeft':
      return { row, column: isCommand ? 0 : column - 1 };
    case 'ArrowRight':
      return { row, column: isCommand ? size.columns - 1 : column + 1 };
    case 'Home':
      return { row: isCommand ? 0 : row, column: 0 };
    case 'End':
      return { row: isCommand ? size.rows - 1 : row, column: size.columns - 1 };
    case 'PageUp':
      return { row: Math.max(0, row - size.page), column };
    case 'PageDown':
      return { row: row + size.page, column };
    default:
      return null;
  }
}
