/** The head of a grid: names and types of its columns, how they are sorted, and a handle at the edge of each. */
import type { PointerEvent } from 'react';
import { Icon } from '../ui/icons.tsx';
import type { Point } from '../ui/menu.tsx';
import type { Column } from './columns.ts';
import { cellId } from './grid-row.tsx';
import type { Cell } from './selection.ts';
import { type Grid, headHeight } from './use-grid.ts';

interface GridHeadProps {
  readonly id: string;
  readonly grid: Grid;
  readonly onMenu: (cell: Cell, at: Point) => void;
}

export function GridHead({ id, grid, onMenu }: GridHeadProps) {
  const { drawn, layout } = grid;
  const draw = (column: Column, place: number) => (
    <HeadCell key={column.index} id={id} grid={grid} column={column} place={place} onMenu={onMenu} />
  );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table cannot leave out what is not on the screen.
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names its active cell.
    <div className="grid-head" role="row" aria-rowindex={1} style={{ width: layout.width, height: headHeight }}>
      {layout.numbersWidth > 0 && (
        <span className="grid-number" aria-hidden="true" style={{ width: layout.numbersWidth }}>
          #
        </span>
      )}
      {drawn.pinned.map((column, at) => draw(column, at))}
      {drawn.gap > 0 && <span className="grid-gap" style={{ width: drawn.gap }} />}
      {drawn.free.map((column, at) => draw(column, drawn.firstFree + at))}
    </div>
  );
}

interface HeadCellProps extends GridHeadProps {
  readonly column: Column;
  readonly place: number;
}

function HeadCell({ id, grid, column, place, onMenu }: HeadCellProps) {
  const { sort, selection } = grid;
  const isSorted = sort?.column === column.index;
  const direction = sort?.isDescending === true ? 'descending' : 'ascending';
  const isActive = selection?.active.row === -1 && selection.active.column === place;
  const { index, name, typeName, isPinned, width, left } = column;
  return (
    // biome-ignore lint/a11y/useSemanticElements: as above.
    // biome-ignore lint/a11y/useFocusableInteractive: as above.
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid takes the keys.
    <div
      id={cellId(id, { row: -1, column: place })}
      className={`grid-cell grid-name${isPinned ? ' pinned' : ''}${isActive ? ' active' : ''}`}
      role="columnheader"
      aria-colindex={place + 1}
      aria-sort={isSorted ? direction : 'none'}
      data-row={-1}
      data-column={place}
      title={`${name} ${typeName}`}
      style={isPinned ? { width, left } : { width }}
      onClick={() => grid.stepSort(index)}
    >
      <span className="grid-name-text">{name}</span>
      <span className="grid-type">{typeName}</span>
      {isPinned && <Icon name="pin" />}
      {isSorted && <Icon name={direction === 'ascending' ? 'up' : 'down'} />}
      <button
        type="button"
        className="grid-more"
        tabIndex={-1}
        aria-label={`Menu of column ${name}`}
        onClick={(event) => {
          event.stopPropagation();
          const { left: x, bottom: y } = event.currentTarget.getBoundingClientRect();
          onMenu({ row: -1, column: place }, { x, y });
        }}
      >
        <Icon name="more" />
      </button>
      <Handle width={width} onResize={(to) => grid.resize(index, to)} onFit={() => grid.fitWidth(index)} />
    </div>
  );
}

interface HandleProps {
  readonly width: number;
  readonly onResize: (width: number) => void;
  readonly onFit: () => void;
}

/** For the mouse; the menu of the column does the same for the keyboard. */
function Handle({ width, onResize, onFit }: HandleProps) {
  const drag = (down: PointerEvent<HTMLSpanElement>) => {
    down.stopPropagation();
    const handle = down.currentTarget;
    const startX = down.clientX;
    const move = (event: globalThis.PointerEvent) => onResize(width + event.clientX - startX);
    handle.setPointerCapture(down.pointerId);
    handle.addEventListener('pointermove', move);
    handle.addEventListener('lostpointercapture', () => handle.removeEventListener('pointermove', move), {
      once: true,
    });
  };
  return (
    <span
      className="grid-handle"
      aria-hidden="true"
      onPointerDown={drag}
      onClick={(event) => event.stopPropagation()}
      onDoubleClick={(event) => {
        event.stopPropagation();
        onFit();
      }}
    />
  );
}
