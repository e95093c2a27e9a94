/** One row of a grid. It is drawn again only when it has changed itself, or other columns are on the screen. */
import { memo, type ReactNode } from 'react';
import { Icon } from '../ui/icons.tsx';
import type { Column } from './columns.ts';
import type { Links, RowState } from './editing.ts';
import type { Cell } from './selection.ts';
import type { Drawn } from './use-grid.ts';
import { displayText, type Row, type Value } from './values.ts';

interface GridRowProps {
  readonly id: string;
  /** As shown. */
  readonly row: number;
  readonly top: number;
  readonly values: Row;
  readonly drawn: Drawn;
  readonly numbersWidth: number;
  readonly width: number;
  /** The selected columns of this row, as shown; -1 for none. */
  readonly from: number;
  readonly to: number;
  /** The column that has the focus, or -1. */
  readonly active: number;
  readonly state: RowState | undefined;
  readonly links: Links | undefined;
  /** What stands in place of the active cell while it is written in. */
  readonly field: ReactNode;
}

export const cellId = (gridId: string, { row, column }: Cell) => `${gridId}-${row}-${column}`;

export const GridRow = memo(function GridRow(props: GridRowProps) {
  const { id, row, top, values, drawn, numbersWidth, width, from, to, active, state, links, field } = props;
  const draw = (column: Column, place: number) => {
    const value = values[column.index] ?? null;
    const isSelected = place >= from && place <= to;
    return (
      // biome-ignore lint/a11y/useSemanticElements: a table cannot leave out what is not on the screen.
      // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names its active cell.
      <div
        key={column.index}
        id={cellId(id, { row, column: place })}
        className={classOf(column, isSelected, place === active, state?.columns.has(column.index) === true)}
        role="gridcell"
        aria-colindex={place + 1}
        aria-selected={isSelected}
        data-row={row}
        data-column={place}
        style={column.isPinned ? { width: column.width, left: column.left } : { width: column.width }}
      >
        {place === active && field !== null ? field : contentOf(value, column, state, links)}
      </div>
    );
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: as above.
    // biome-ignore lint/a11y/useFocusableInteractive: as above.
    <div
      className={state === undefined ? 'grid-row' : `grid-row ${state.kind}`}
      role="row"
      aria-rowindex={row + 2}
      style={{ width, transform: `translateY(${top}px)` }}
    >
      {numbersWidth > 0 && (
        <span
          className={from === -1 ? 'grid-number' : 'grid-number selected'}
          aria-hidden="true"
          data-row={row}
          data-column={-1}
          style={{ width: numbersWidth }}
        >
          {row + 1}
        </span>
      )}
      {drawn.pinned.map((column, at) => draw(column, at))}
      {drawn.gap > 0 && <span className="grid-gap" style={{ width: drawn.gap }} />}
      {drawn.free.map((column, at) => draw(column, drawn.firstFree + at))}
    </div>
  );
});

function contentOf(value: Value, column: Column, state: RowState | undefined, links: Links | undefined): ReactNode {
  const isDefault = state?.kind === 'new' && !state.columns.has(column.index);
  if (value === null) return <span className="null">{isDefault ? 'default' : 'NULL'}</span>;
  if (links === undefined || !links.columns.has(column.index)) return textOf(value, column);
  return (
    <>
      {textOf(value, column)}
      <button type="button" className="grid-link" tabIndex={-1} aria-label={links.labelOf(column.index, value)}>
        <Icon name="chevron" />
      </button>
    </>
  );
}

function classOf({ kind, isPinned }: Column, isSelected: boolean, isActive: boolean, isChanged: boolean): string {
  return [
    'grid-cell',
    kind === 'number' ? 'number' : '',
    isPinned ? 'pinned' : '',
    isSelected ? 'selected' : '',
    isActive ? 'active' : '',
    isChanged ? 'changed' : '',
  ]
    .filter((name) => name !== '')
    .join(' ');
}

/** No cell shows more, and the browser would measure all of it. */
const lettersMax = 300;

function textOf(value: string, { kind }: Column): string {
  return displayText(value.length > lettersMax ? `${value.slice(0, lettersMax)}…` : value, kind);
}
